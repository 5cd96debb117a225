// Tensors in the store of series: what a row costs to write, the heat map of 1 000 tensors, the list of
// 100 000 names, health, and what all that takes in memory.
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/bench_report.h"
#include "insights/insights.h"

namespace {

using namespace tocsin;  // a program of one file
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kTensors = 1000;
constexpr std::int64_t kSteps = 1000;
constexpr std::int64_t kLongSteps = 64'000;  // of a run of which a hundred tensors were kept
constexpr std::int64_t kNames = 100'000;
constexpr std::size_t kRowsOfACommit = 100'000;
constexpr std::int64_t kLiveSteps = 504;     // of a run that goes on: none of its chunks is closed
constexpr std::size_t kRowsOfALive = 8'000;  // of a commit of its: 63 pieces of each series
constexpr int kReads = 20;

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "tensors_bench: %s failed\n", what);
  std::exit(2);
}

core::RunUid run_of(std::uint8_t last) {
  core::RunUid out;
  out.bytes.back() = last;
  return out;
}

// As gradients are: noisy over decades, none of them not finite.
std::array<double, insights::tensor_column::columns> row_at(std::int64_t tensor,
                                                            std::int64_t step) {
  const auto noise = static_cast<double>((tensor * 7919 + step * 104'729) % 1009) / 1009;
  std::array<double, insights::tensor_column::columns> out{};
  out.fill(std::pow(10.0, -3 + noise));
  out[insights::tensor_column::time] = 1.7e15 + static_cast<double>(step) * 3e4;
  for (const std::size_t none : {insights::tensor_column::nan, insights::tensor_column::posinf,
                                 insights::tensor_column::neginf})
    out[none] = 0;
  out[insights::tensor_column::count] = 4096;
  return out;
}

// Steps in order, as they are trained. Seconds of a row.
double write(insights::SeriesWriter& store, std::uint8_t run, std::int64_t tensors,
             std::int64_t steps, std::size_t most = kRowsOfACommit) {
  const insights::SegmentOf segment{run_of(run), 9, 1, 1, 0};
  const auto begin = Clock::now();
  for (std::int64_t tensor = 0; tensor < tensors; ++tensor) {
    const std::string text = "gradient/model.layers." + std::to_string(tensor) + ".weight";
    store.name(segment.run, insights::FamilyKind::tensor,
               {static_cast<std::uint64_t>(tensor), text, core::Role::gradient, "", 0, "64×64",
                "gradients"});
  }
  for (std::int64_t step = 0; step < steps; ++step) {
    for (std::int64_t tensor = 0; tensor < tensors; ++tensor)
      store.add(segment, insights::FamilyKind::tensor, static_cast<std::uint64_t>(tensor),
                core::Mode::train, step, row_at(tensor, step));
    if (store.waiting() >= most) must(store.commit({}).has_value(), "commit");
  }
  must(store.commit({}).has_value(), "commit");
  return since(begin) / static_cast<double>(tensors * steps);
}

template <typename Ask>
double slowest(const std::string& path, const Ask& ask) {
  std::vector<double> took;
  for (int turn = 0; turn < kReads; ++turn) {
    const auto begin = Clock::now();
    auto reader = insights::SeriesReader::open(path);  // as each request does
    must(reader.has_value(), "open");
    ask(**reader);
    took.push_back(since(begin));
  }
  return bench::quantile(took, 0.99) * 1e3;
}

double heat(const std::string& path, std::uint8_t run, std::int64_t rows,
            std::size_t columns = 1000) {
  return slowest(path, [&](insights::SeriesReader& reader) {
    insights::HeatAsk ask;
    ask.of.run = core::to_text(run_of(run));
    ask.columns = 1000;
    ask.rows = 1000;
    const auto answer = insights::ask_heat(reader, ask);
    must(answer.has_value() && static_cast<std::int64_t>(answer->rows.size()) == rows &&
             answer->rows[0].cells.size() >= columns,
         "heat map");
  });
}

double names(const std::string& path, std::uint8_t run) {
  return slowest(path, [&](insights::SeriesReader& reader) {
    const auto fits = insights::name_test("name", ".*layers\\.9.*7\\.weight");
    const auto tallies =
        reader.tallies(core::to_text(run_of(run)), insights::FamilyKind::tensor, std::nullopt);
    constexpr std::array kKind{insights::FamilyKind::tensor};
    std::size_t found = 0;
    for (const auto& name : reader.names(core::to_text(run_of(run)), kKind))
      found += tallies.contains(name.hash) && (*fits)(name.text) ? 1 : 0;
    must(found > 1000, "names");
  });
}

double health(const std::string& path, std::uint8_t run) {
  return slowest(path, [&](insights::SeriesReader& reader) {
    insights::HealthAsk ask;
    ask.of.run = core::to_text(run_of(run));
    ask.step = kSteps / 2;
    const auto answer = insights::ask_health(reader, ask);
    must(answer.has_value() && answer->lines.size() == ask.most, "health");
  });
}

}  // namespace

int main() {
  const auto folder =
      std::filesystem::temp_directory_path() / ("tensors-bench-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string path = folder / "curves.db";
  insights::SetAside moved;
  auto store = insights::SeriesWriter::open(path, "bench", moved);
  must(store.has_value(), "open");
  bench::figure("tensors: write a row of 14 numbers", write(**store, 1, kTensors, kSteps) * 1e9,
                "ns");
  const auto bytes = static_cast<double>((*insights::SeriesReader::open(path))->size().bytes);
  bench::figure("tensors: bytes of a row", bytes / (kTensors * kSteps), "B");
  bench::judged("tensors: heat map, 1000 tensors x 1000 steps, p99", heat(path, 1, kTensors), "ms",
                150, false);
  bench::judged("tensors: health of 500 tensors of 1000, p99", health(path, 1), "ms", 150, false);
  (void)write(**store, 2, 100, kLongSteps);
  bench::judged("tensors: heat map, 100 tensors x 64000 steps, p99", heat(path, 2, 100), "ms", 150,
                false);
  (void)write(**store, 4, kTensors, kLiveSteps, kRowsOfALive);
  bench::judged("tensors: heat map, 1000 tensors of a run that goes on, p99",
                heat(path, 4, kTensors, 504), "ms", 150, false);
  bench::judged("tensors: health of 500 tensors of it, p99", health(path, 4), "ms", 150, false);
  (void)write(**store, 3, kNames, 1);
  bench::judged("tensors: a search among 100000 names, p99", names(path, 3), "ms", 100, false);
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  bench::figure("tensors: memory at most", static_cast<double>(used.ru_maxrss) / 1024, "MiB");
  std::filesystem::remove_all(folder);
  return 0;
}
