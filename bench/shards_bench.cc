// What a run of many workers costs its hottest partition, in one shard and in eight (docs/wire.md):
// the same 80 tensors of every worker and step, judged by rules of rows, of step times and of all
// workers. Ratios; the baseline, one shard, stands in the same run.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "bench/healthy_rows.h"
#include "rules/rules.h"

namespace tocsin::rules {
namespace {

constexpr std::size_t kTensors = 80;
constexpr std::int64_t kWarmUp = 2;  // steps: units and states are made
constexpr std::int64_t kSteps = 4;
constexpr std::int64_t kStart = 1'767'323'045'000'000'000;

template <typename T>
void append(std::string& out, T value) {
  static_assert(sizeof(T) == core::kColumnBytes);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// One shard's frames of one step: of all workers the same but for who sends them.
struct Shard {
  std::uint16_t number = 0;
  std::uint16_t of = 1;
  std::uint32_t workers = 1;
  std::string rows;
  std::int64_t offset = 0;
  std::uint64_t sequence = 0;
  std::unique_ptr<Engine> engine;

  [[nodiscard]] std::size_t tensors() const { return kTensors / of; }

  Shard(std::uint16_t its_number, std::uint16_t shards, std::uint32_t count)
      : number(its_number), of(shards), workers(count) {
    std::vector<core::SummaryRow> all;
    for (std::size_t i = 0; i < tensors(); ++i) {
      const std::string name = "layer" + std::to_string(number * tensors() + i);
      all.push_back(bench::healthy_row(name, core::Role::gradient));
    }
    rows = bench::body_of(all);
    RulesConfig rules;
    for (const char* name : {"exploding_tensor", "straggler", "replica_divergence"}) {
      auto rule = make_rule(name);
      if (!rule) std::abort();
      rules.rules.push_back(std::move(*rule));
    }
    auto made = Engine::create(std::move(rules), {});
    if (!made) std::abort();
    engine = std::move(*made);
  }

  void feed(core::FrameHeader& header, core::FrameKind kind, std::size_t count, std::size_t columns,
            const std::string& bytes) {
    header.kind = kind;
    header.row_count = static_cast<std::uint32_t>(count);
    header.row_stride = static_cast<std::uint16_t>(columns * core::kColumnBytes);
    header.body_length = static_cast<std::uint32_t>(bytes.size());
    ++header.sequence;
    const core::WallTime time = core::wall_time(header.time);
    engine->on_frame({header, reinterpret_cast<const std::byte*>(bytes.data())}, {},
                     {"telemetry", "telemetry", 0, offset++, time}, time);
  }

  void step(std::int64_t step) {
    core::FrameHeader header;
    header.run = core::run_uid_for("bench", "shards");
    header.world_size = workers;
    header.shard = number;
    header.shard_count = of;
    header.incarnation = 1;
    header.mode = core::Mode::train;
    header.step = header.global_step = step;
    header.time = kStart + step * 1'000'000'000;
    std::string loss;
    std::string end;
    for (const std::int64_t value : {step, step, header.time - 900'000'000, header.time}) {
      append(end, value);
    }
    append(end, std::uint64_t{1});
    append(end, std::uint64_t{0});
    append(loss, core::name_hash("loss"));
    append(loss, step);
    append(loss, step);
    append(loss, header.time);
    append(loss, 1.0);
    append(loss, core::meta::make(core::Dtype::f64, core::Role::loss));
    for (std::uint32_t rank = 0; rank < workers; ++rank) {
      header.rank = rank;
      header.worker = core::name_hash("worker_" + std::to_string(rank));
      header.sequence = sequence;
      feed(header, core::FrameKind::summary, tensors(), core::summary_column::columns, rows);
      if (number == 0) {
        feed(header, core::FrameKind::scalar, 1, core::scalar_column::columns, loss);
      }
      feed(header, core::FrameKind::step_end, 1, core::step_end_column::columns, end);
    }
    sequence += 3;
    (void)engine->take(0);
  }
};

/// Seconds per step.
double cost(std::uint16_t shard, std::uint16_t shards, std::uint32_t workers) {
  Shard one(shard, shards, workers);
  std::int64_t step = 0;
  for (; step < kWarmUp; ++step) one.step(step);
  const auto begin = std::chrono::steady_clock::now();
  for (; step < kWarmUp + kSteps; ++step) one.step(step);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return took.count() / kSteps;
}

void run(std::uint32_t workers) {
  constexpr std::uint16_t kShards = 8;
  const double whole = cost(0, 1, workers);
  const double first = cost(0, kShards, workers);  // has the scalars, and judges the steps
  const double other = cost(1, kShards, workers);
  const double hottest = std::max(first, other);
  const double rows = static_cast<double>(workers) * kTensors;
  std::printf(
      "%6u workers, %zu tensors each: one shard %.2f M rows/s; of %u shards the hottest lets the "
      "run have %.2f M rows/s (%.2f x; the first shard %.2f x, another %.2f x)\n",
      workers, kTensors, rows / whole / 1e6, unsigned{kShards}, rows / hottest / 1e6,
      whole / hottest, whole / first, whole / other);
}

}  // namespace
}  // namespace tocsin::rules

int main() {
  for (const std::uint32_t workers : {1000U, 10'000U}) tocsin::rules::run(workers);
  return 0;
}
