// What one frame of one rank costs when the run has many ranks: every rank sends a loss and a
// step-end per step; and, with every rule that compares or joins ranks, four weights with their
// digests besides. Wanted: flat. Also the longest piece of a snapshot of a million units.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/bench_report.h"
#include "bench/rule_sets.h"
#include "rules/rules.h"

namespace tocsin::rules {
namespace {

constexpr std::int64_t kStart = 1'767'323'045'000'000'000;

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::unique_ptr<Engine> make_engine(const std::vector<std::string_view>& names) {
  RulesConfig config;
  for (const std::string_view name : names) config.rules.push_back(*make_rule(name));
  EngineOptions options;
  options.config.max_units_per_run = 4'000'000;
  auto engine = Engine::create(std::move(config), std::move(options));
  return std::move(*engine);
}

struct Feeder {
  Engine& engine;
  core::FrameHeader header;
  std::string body;
  std::int64_t offset = 0;

  explicit Feeder(Engine& to) : engine(to) {
    header.run = core::run_uid_for("bench", "ranks");
    header.incarnation = 1;
    header.mode = core::Mode::train;
    header.time = kStart;
  }
  template <typename T>
  void add(T value) {
    body.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void send(core::FrameKind kind, std::uint32_t rows, std::size_t columns) {
    header.kind = kind;
    header.row_count = rows;
    header.row_stride = static_cast<std::uint16_t>(columns * core::kColumnBytes);
    header.body_length = static_cast<std::uint32_t>(body.size());
    ++header.sequence;
    const core::WallTime time = core::wall_time(header.time);
    engine.on_frame({header, reinterpret_cast<const std::byte*>(body.data())}, {},
                    {"telemetry", "telemetry", 0, offset++, time}, time);
    body.clear();
  }
};

/// The loss of a step, and its end.
void send_loss_and_end(Feeder& feeder, std::uint64_t loss, std::int64_t number) {
  feeder.add(loss);
  feeder.add(number);
  feeder.add(number);
  feeder.add(feeder.header.time);
  feeder.add(1.0 / static_cast<double>(number + 1));
  feeder.add(core::meta::make(core::Dtype::f64, core::Role::loss));
  feeder.send(core::FrameKind::scalar, 1, core::scalar_column::columns);
  feeder.add(number);
  feeder.add(number);
  feeder.add(feeder.header.time - 100'000'000);
  feeder.add(feeder.header.time);
  feeder.add(std::uint64_t{1});
  feeder.add(std::uint64_t{0});
  feeder.send(core::FrameKind::step_end, 1, core::step_end_column::columns);
}

/// Nanoseconds per frame with so many ranks.
double frame_ns(std::uint32_t ranks) {
  const auto engine = make_engine({"loss_not_decreasing"});
  Feeder feeder(*engine);
  feeder.header.world_size = ranks;
  std::vector<std::uint64_t> names(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    names[rank] = core::name_hash("worker_" + std::to_string(rank));
  }
  const std::uint64_t loss = core::name_hash("loss");
  std::uint64_t frames = 0;
  const auto step = [&](std::int64_t number) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      feeder.header.rank = rank;
      feeder.header.worker = names[rank];
      feeder.header.sequence = static_cast<std::uint64_t>(2 * number);
      feeder.header.step = feeder.header.global_step = number;
      feeder.header.time = kStart + number * 100'000'000;
      send_loss_and_end(feeder, loss, number);
      frames += 2;
    }
    (void)engine->take(0);
  };
  std::int64_t number = 0;
  for (; number < 3; ++number) step(number);
  frames = 0;
  const double from = seconds();
  while (seconds() - from < 1) step(number++);
  return (seconds() - from) * 1e9 / static_cast<double>(frames);
}

/// Four weights with the statistic digest, the same of every rank.
void add_weights(Feeder& feeder, std::int64_t step) {
  constexpr std::uint32_t kWeights = 4;
  constexpr std::uint32_t kPayload = 8 + kWeights * 4 + kWeights * 8;
  for (std::size_t k = 0; k < core::summary_column::columns; ++k) {
    for (std::uint64_t i = 0; i < kWeights; ++i) {
      core::SummaryRow row;
      row.name = 0x9E3779B97F4A7C15ULL * (i + 1);
      row.count = 64;
      row.sumsq = row.abs_sum = row.max = 1 + 0.01 * static_cast<double>(step % 7);
      row.meta = core::meta::make(core::Dtype::f32, core::Role::weight);
      const char* columns = reinterpret_cast<const char*>(&row);
      feeder.body.append(columns + k * core::kColumnBytes, core::kColumnBytes);
    }
  }
  feeder.add(std::uint16_t{1});
  feeder.add(std::uint16_t{0});
  feeder.add(kPayload);
  feeder.add(static_cast<std::uint16_t>(core::SparseStat::digest));
  feeder.add(std::uint16_t{0});
  feeder.add(kWeights);
  for (std::uint32_t i = 0; i < kWeights; ++i) feeder.add(i);
  for (std::uint64_t i = 0; i < kWeights; ++i) {
    feeder.add(static_cast<std::uint64_t>(step) * 1000 + i);
  }
  feeder.send(core::FrameKind::summary, kWeights, core::summary_column::columns);
}

/// Rules that look at several ranks at once: those about series, workers and durations, and the one
/// that compares weights.
std::vector<std::string_view> joining_rules() {
  auto out = bench::rules_with_unit(group::kPyTorch | group::kProfiler,
                                    {"series", "worker", "window", "step"});
  out.push_back("replica_divergence");
  return out;
}

/// Nanoseconds per frame, three frames of each rank and step, with joining_rules().
double joined_ns(std::uint32_t ranks) {
  const auto engine = make_engine(joining_rules());
  Feeder feeder(*engine);
  feeder.header.world_size = ranks;
  std::vector<std::uint64_t> names(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    names[rank] = core::name_hash("worker_" + std::to_string(rank));
  }
  const std::uint64_t loss = core::name_hash("loss");
  std::uint64_t frames = 0;
  const auto step = [&](std::int64_t number) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      feeder.header.rank = rank;
      feeder.header.worker = names[rank];
      feeder.header.sequence = static_cast<std::uint64_t>(3 * number);
      feeder.header.step = feeder.header.global_step = number;
      feeder.header.time = kStart + number * 100'000'000;
      add_weights(feeder, number);
      send_loss_and_end(feeder, loss, number);
      frames += 3;
    }
    (void)engine->take(0);
  };
  // Windows are full before it counts.
  const std::int64_t warm = ranks > 1000 ? 25 : 120;
  std::int64_t number = 0;
  for (; number < warm; ++number) step(number);
  frames = 0;
  const double from = seconds();
  while (seconds() - from < 1) step(number++);
  return (seconds() - from) * 1e9 / static_cast<double>(frames);
}

void snapshot_pieces() {
  constexpr std::size_t kUnits = 1'000'000;
  constexpr std::size_t kRows = 5000;
  constexpr std::size_t kBudget = std::size_t{4} << 20;
  const auto engine =
      make_engine({"exploding_tensor", "vanishing_gradient", "weight_update_ratio"});
  Feeder feeder(*engine);
  feeder.header.world_size = 1;
  feeder.header.worker = core::name_hash("worker_0");
  const auto frame = [&](std::size_t from) {
    for (std::size_t k = 0; k < core::summary_column::columns; ++k) {
      for (std::size_t i = from; i < from + kRows; ++i) {
        core::SummaryRow row;
        row.name = 0x9E3779B97F4A7C15ULL * (i + 1);
        row.count = 4;
        row.sumsq = row.abs_sum = row.max = 1;
        row.meta = core::meta::make(core::Dtype::f32, core::Role::gradient);
        const char* columns = reinterpret_cast<const char*>(&row);
        feeder.body.append(columns + k * core::kColumnBytes, core::kColumnBytes);
      }
    }
    feeder.send(core::FrameKind::summary, kRows, core::summary_column::columns);
  };
  for (std::size_t from = 0; from < kUnits; from += kRows) frame(from);
  (void)engine->take(0);
  feeder.header.step = 1;
  double longest = 0;
  double longest_frame = 0;
  std::size_t bytes = 0;
  std::size_t pieces = 0;
  bool more = true;
  for (std::size_t from = 0; more; from = (from + kRows) % kUnits, ++pieces) {
    const double start = seconds();
    more = engine->snapshot(0, kBudget, [&](const StateRecord& record) {
      bytes += record.value ? record.value->size() : 0;
    });
    const double middle = seconds();
    if (from == 0 && pieces > 0) ++feeder.header.step;
    frame(from);
    (void)engine->take(0);
    longest = std::max(longest, middle - start);
    longest_frame = std::max(longest_frame, seconds() - middle);
  }
  bench::figure("snapshot of 1 M units, 3 rules: pieces", static_cast<double>(pieces), "pieces");
  bench::figure("snapshot of 1 M units: size", static_cast<double>(bytes) / 1e6, "MB");
  bench::judged("snapshot of 1 M units: longest piece", longest * 1e3, "ms", 50, false);
  bench::judged("longest frame of 5000 rows meanwhile", longest_frame * 1e3, "ms", 50, false);
}

}  // namespace
}  // namespace tocsin::rules

int main() {
  using tocsin::rules::frame_ns;
  const double few = frame_ns(10);
  const double many = frame_ns(10'000);
  tocsin::bench::figure("frame of one of 10 ranks", few, "ns");
  tocsin::bench::judged("frame of one of 10 000 ranks", many, "ns", 3000, false);
  tocsin::bench::figure("ratio 10 000 ranks : 10 ranks", many / few, "");
  const std::string rules =
      std::to_string(tocsin::rules::joining_rules().size()) + " rules over ranks: ";
  const double one = tocsin::rules::joined_ns(1);
  tocsin::bench::figure(rules + "frame of the only rank", one, "ns");
  for (const std::uint32_t ranks : {10U, 100U, 1000U, 10'000U}) {
    const double cost = tocsin::rules::joined_ns(ranks);
    tocsin::bench::figure(rules + "frame of one of " + std::to_string(ranks), cost, "ns");
    if (ranks == 10'000) {
      tocsin::bench::judged(rules + "ratio 10 000 : 1", cost / one, "ratio", 4, false);
    }
  }
  tocsin::rules::snapshot_pieces();
  return 0;
}
