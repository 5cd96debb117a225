// Rows per second through the engine: frames of 100 summary rows in memory; one rule, eight, and all
// tensor rules of a model of 200 tensors.
// Also counts allocations per row in steady state (wanted: 0). Decoding is measured elsewhere. Last, in
// turns: what a rule in YAML costs beside the same rule in C++; exit code 1 when that is too much.
#include <benchmark/benchmark.h>
#include <time.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "bench/bench_report.h"
#include "bench/healthy_rows.h"
#include "bench/rule_sets.h"
#include "rules/rules.h"

namespace {
std::atomic<std::uint64_t> allocations{0};
}  // namespace

// NOLINTBEGIN: the whole program's allocator, to count
[[gnu::noinline]] void* operator new(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
// NOLINTEND

namespace tocsin::rules {
namespace {

constexpr std::size_t kRows = 100;
constexpr std::int64_t kStart = 1'767'323'045'000'000'000;

/// Frames of one worker whose step and sequence are moved on between passes.
struct Stream {
  std::size_t tensors = 0;
  std::vector<std::string> bodies;
  core::FrameHeader header;
  std::string scalars;
  std::string step_end;
  std::int64_t offset = 0;

  explicit Stream(std::size_t count) : tensors(count) {
    header.run = core::run_uid_for("bench", "rows");
    header.world_size = 1;
    header.worker = core::name_hash("worker_0");
    header.incarnation = 1;
    for (std::size_t from = 0; from < count; from += kRows) bodies.push_back(body(from));
  }

  // Half gradients, half weights; healthy values.
  static std::string body(std::size_t from) {
    std::vector<core::SummaryRow> rows;
    for (std::size_t i = from; i < from + kRows; ++i) {
      const core::Role role = i % 2 == 0 ? core::Role::gradient : core::Role::weight;
      rows.push_back(bench::healthy_row("layer" + std::to_string(i), role));
    }
    return bench::body_of(rows);
  }

  void feed(Engine& engine, core::FrameKind kind, std::uint32_t rows, std::size_t columns,
            const std::string& bytes) {
    header.kind = kind;
    header.mode = core::Mode::train;
    header.row_count = rows;
    header.row_stride = static_cast<std::uint16_t>(columns * core::kColumnBytes);
    header.body_length = static_cast<std::uint32_t>(bytes.size());
    ++header.sequence;
    const core::WallTime time = core::wall_time(header.time);
    engine.on_frame({header, reinterpret_cast<const std::byte*>(bytes.data())}, {},
                    {"telemetry", "telemetry", 0, offset++, time}, time);
  }

  /// One training step: every tensor, the loss, the step-end.
  void step(Engine& engine) {
    header.time = kStart + header.step * 1'000'000;
    for (const std::string& bytes : bodies) {
      feed(engine, core::FrameKind::summary, kRows, core::summary_column::columns, bytes);
    }
    scalars.clear();
    const double loss = 10.0 / (1.0 + static_cast<double>(header.step));
    append(scalars, core::name_hash("loss"));
    append(scalars, header.step);
    append(scalars, header.step);
    append(scalars, header.time);
    append(scalars, loss);
    append(scalars, core::meta::make(core::Dtype::f64, core::Role::loss));
    feed(engine, core::FrameKind::scalar, 1, core::scalar_column::columns, scalars);
    step_end.clear();
    append(step_end, header.step);
    append(step_end, header.step);
    append(step_end, header.time);
    append(step_end, header.time + 900'000);
    append(step_end, std::uint64_t{1});
    append(step_end, std::uint64_t{0});
    feed(engine, core::FrameKind::step_end, 1, core::step_end_column::columns, step_end);
    ++header.step;
    ++header.global_step;
  }

  template <typename T>
  static void append(std::string& out, T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
};

std::unique_ptr<Engine> make_engine(const std::string& yaml) {
  RulesConfig config;
  config::Diagnostics problems;
  const config::Environment nothing = [](const std::string&) { return std::nullopt; };
  const auto document = config::Document::parse(yaml, "bench", nothing, problems);
  document->read(problems, [&](config::Reader& root) { read_rules(root, config); });
  auto engine = Engine::create(std::move(config), {});
  return std::move(*engine);
}

constexpr char kOne[] = "rules: [exploding_tensor]";
constexpr char kEight[] =
    "rules: [exploding_tensor, vanishing_gradient, loss_not_decreasing, weight_update_ratio, "
    "overfit, "
    "{use: all_zero, with: {collection_names: [weights, gradients]}}, stalled_training_rule, "
    "cpu_bottleneck]";

// What exploding_tensor asks, in the language of declarative rules: the two are compared (one_rule
// and declared_rule). The third keeps a window of 50 steps of every tensor and takes its median.
constexpr char kDeclared[] =
    "rules: [{name: nan_any, select: 'tensor(\".*\")', when: 'nan + posinf + neginf > 0'}]";
constexpr char kDeclaredWindow[] =
    "rules: [{name: spike, select: 'tensor(\".*\")', window: last 50 steps, when: 'l2 > 10 * "
    "median(l2)'}]";

// A window that slides and one that only grows.
constexpr char kDeclaredMean[] =
    "rules: [{name: jump, select: 'tensor(\".*\")', window: last 10 steps, when: 'l2 > 10 * "
    "mean(l2)'}]";
constexpr char kDeclaredStart[] =
    "rules: [{name: jump, select: 'tensor(\".*\")', window: since start, when: 'l2 > 10 * "
    "mean(l2)'}]";

void rows(benchmark::State& state, const char* rules) {
  Stream stream(static_cast<std::size_t>(state.range(0)));
  const std::unique_ptr<Engine> engine = make_engine(rules);
  for (int i = 0; i < 20; ++i) stream.step(*engine);
  engine->take(0);
  const std::uint64_t before = allocations.load();
  std::uint64_t steps = 0;
  for (auto _ : state) {
    stream.step(*engine);
    ++steps;
  }
  const double judged = static_cast<double>(steps) * static_cast<double>(stream.tensors);
  const double made = static_cast<double>(allocations.load() - before);
  state.counters["rows/s"] = benchmark::Counter(judged, benchmark::Counter::kIsRate);
  state.counters["allocations/row"] = made / judged;
  state.counters["allocations/step"] = made / static_cast<double>(steps);
  state.counters["issues"] = static_cast<double>(engine->take(0).events.size());
}

BENCHMARK_CAPTURE(rows, one_rule, kOne)->Arg(100)->Arg(1000)->Arg(100000);
BENCHMARK_CAPTURE(rows, declared_rule, kDeclared)->Arg(100)->Arg(1000)->Arg(100000);
BENCHMARK_CAPTURE(rows, declared_window, kDeclaredWindow)->Arg(100)->Arg(1000);
BENCHMARK_CAPTURE(rows, declared_mean, kDeclaredMean)->Arg(100)->Arg(1000);
BENCHMARK_CAPTURE(rows, declared_start, kDeclaredStart)->Arg(100)->Arg(1000);
BENCHMARK_CAPTURE(rows, eight_rules, kEight)->Arg(100)->Arg(1000)->Arg(100000);
BENCHMARK_CAPTURE(rows, tensor_rules, bench::kTensorRules)->Arg(200)->Arg(1000);

// ── A rule in YAML beside the same in C++ ──────────────────────────────────────────────────────

double cpu_nanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
}

/// One rule over its own stream.
struct Side {
  Stream stream;
  std::unique_ptr<Engine> engine;
  std::vector<double> times = {};  // ns per row, round by round

  Side(const char* rules, std::size_t tensors) : stream(tensors), engine(make_engine(rules)) {
    for (int i = 0; i < 100; ++i) stream.step(*engine);
  }
  void round() {
    constexpr int kSteps = 500;
    const double begin = cpu_nanoseconds();
    for (int i = 0; i < kSteps; ++i) stream.step(*engine);
    times.push_back((cpu_nanoseconds() - begin) / kSteps / static_cast<double>(stream.tensors));
  }
};

bool declared_beside_built_in() {
  constexpr double kMost = 3;
  constexpr int kRounds = 15;
  bool met = true;
  for (const std::size_t tensors : {100, 1000}) {
    Side built_in(kOne, tensors);
    Side declared(kDeclared, tensors);
    for (int round = 0; round < kRounds; ++round) {
      built_in.round();
      declared.round();
    }
    met &= bench::beside("a rule in YAML, " + std::to_string(tensors) + " tensors; floor: in C++",
                         bench::quantile(declared.times, 0.5), bench::quantile(built_in.times, 0.5),
                         "ns", kMost);
  }
  return met;
}

}  // namespace
}  // namespace tocsin::rules

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return tocsin::rules::declared_beside_built_in() ? 0 : 1;
}
