// A stage that adds up numbers, and its loop on the broker in memory with a clock moved by hand.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/loop/topic_loop.h"
#include "tests/simulation/broker.h"
#include "tests/simulation/clock.h"

namespace tocsin::app {

using namespace std::chrono_literals;

inline constexpr const char* kGroup = "tocsin-adder";

/// Adds up the numbers it reads: each record of `telemetry` gives one of `issues` with the sum so
/// far, and the sum is its state. Lost or doubled records show in the sums.
class Adder final : public Stage {
 public:
  explicit Adder(bool exactly_once = true) {
    wiring_.name = "adder";
    wiring_.part = "rules";
    wiring_.group = kGroup;
    wiring_.topics = {"telemetry"};
    if (exactly_once) wiring_.transactional_id = "adder-0";
    wiring_.writer = "adder";
    wiring_.state_topic = "rules-state";
    wiring_.state = StateScope::input_partition;
  }
  [[nodiscard]] const StageWiring& wiring() const override { return wiring_; }
  StageWiring& change_wiring() { return wiring_; }
  core::Status open(const Instant&) override {
    ++opened;
    sums_.clear();
    stands_at_.clear();
    fresh_.clear();
    return core::ok();
  }
  core::Status restore(std::int32_t partition, const core::RecordView& record) override {
    const std::string text(record.text());
    const auto comma = text.find(',');
    sums_[partition] = std::stol(text.substr(0, comma));
    stands_at_[partition] = std::stol(text.substr(comma + 1));
    return core::ok();
  }
  core::Result<std::vector<core::Position>> restored(std::int32_t partition,
                                                     std::span<const core::Position> committed,
                                                     const Instant&) override {
    return std::vector<core::Position>{{committed.front().where, stands_at_[partition]}};
  }
  void started(std::int32_t partition, const Instant&) override { live.push_back(partition); }
  void state_fault(std::int32_t partition, const core::Error& error, const Instant&) override {
    faults.push_back(error.message);
    faulty.push_back(partition);
  }
  std::optional<Refusal> handle(const core::RecordView& record,
                                const StageContext& context) override {
    const std::string text(record.text());
    if (text == "boom") throw std::runtime_error("it went boom");
    if (text == "bad") return Refusal{"bad_number", "not a number"};
    sums_[record.partition] += std::stol(text);
    ++handled;
    replayed += context.replaying ? 1 : 0;
    if (context.replaying) return std::nullopt;
    core::OutRecord out{"issues", "sum", std::to_string(sums_[record.partition])};
    out.partition = 0;
    fresh_.push_back({record.partition, std::move(out), !sums_wait, sums_wait});
    if (handled % snapshot_every == 0) {
      core::OutRecord state{
          "rules-state", "sum",
          std::to_string(sums_[record.partition]) + "," + std::to_string(record.offset + 1)};
      state.partition = record.partition;
      fresh_.push_back({record.partition, std::move(state)});
    }
    return std::nullopt;
  }
  std::optional<core::Duration> tick(const StageTick& tick) override {
    live_now.clear();
    for (std::int32_t p = 0; p < 4; ++p) {
      if (tick.live(p)) live_now.push_back(p);
    }
    const auto read_until = tick.read_until(0);
    unread = read_until ? std::optional(tick.now.steady - *read_until) : std::nullopt;
    return std::nullopt;
  }
  StageOutput take(const Instant&) override {
    StageOutput out;
    out.records = std::exchange(fresh_, {});
    return out;
  }
  void committed(const Instant&) override { ++commits; }
  void revoked(std::span<const core::StreamPartition> gone) override {
    for (const auto& one : gone) {
      sums_.erase(one.partition);
      stands_at_.erase(one.partition);
    }
  }
  void lost(std::span<const core::StreamPartition> gone) override { revoked(gone); }

  bool sums_wait = false;  // sums are no reason for a commit; else they may go ahead of theirs
  int snapshot_every = 3;
  int opened = 0, handled = 0, replayed = 0, commits = 0;
  std::vector<std::int32_t> live, live_now, faulty;
  std::optional<core::Duration> unread;  // since when partition 0 may hold unread records
  std::vector<std::string> faults;

 private:
  StageWiring wiring_;
  std::map<std::int32_t, long> sums_;
  std::map<std::int32_t, std::int64_t> stands_at_;
  std::vector<StageRecord> fresh_;
};

class TopicLoopTest : public testing::Test {
 protected:
  explicit TopicLoopTest(std::int32_t partitions = 1) : broker_(options(partitions)) {}

  simulation::BrokerOptions options(std::int32_t partitions) {
    simulation::BrokerOptions options;
    options.topics = simulation::MemoryBroker::one_partition();
    options.topics.partitions = partitions;
    options.clock = &clock_;
    return options;
  }
  LoopPorts ports(ingest::Transport& transport) {
    return {&transport, &clock_, &log_, &telemetry_, inline_committer(), nullptr};
  }
  struct Process {
    Process(simulation::MemoryBroker& where,
            const std::function<LoopPorts(ingest::Transport&)>& with, Adder adder = Adder())
        : broker(where),
          transport(where.connect("p")),
          stage(std::move(adder)),
          loop(stage, with(*transport)) {}
    void kill() { broker.die(*transport); }
    simulation::MemoryBroker& broker;
    std::unique_ptr<ingest::Transport> transport;
    Adder stage;
    TopicLoop loop;
  };
  std::unique_ptr<Process> start() {
    return std::make_unique<Process>(broker_, [this](auto& transport) { return ports(transport); });
  }
  void run(TopicLoop& loop, int steps = 20) {
    for (int i = 0; i < steps; ++i) {
      loop.step(0ms);
      clock_.advance(20ms);
    }
  }
  void numbers(int from, int to) {
    for (int i = from; i <= to; ++i) {
      core::OutRecord record{"telemetry", "k", std::to_string(i)};
      record.timestamp = core::nanoseconds(clock_.now());
      broker_.append(std::move(record));
    }
  }
  void text(std::string value) { broker_.append({"telemetry", "k", std::move(value)}); }
  std::vector<std::string> sums() {
    std::vector<std::string> out;
    for (const auto& stored : broker_.records("issues")) out.push_back(*stored.record.value);
    return out;
  }
  static std::vector<std::string> expected(int count) {
    std::vector<std::string> out;
    for (long i = 1, sum = 0; i <= count; ++i) out.push_back(std::to_string(sum += i));
    return out;
  }

  simulation::SimulatedClock clock_;
  core::NullLog log_;
  core::NullTelemetry telemetry_;
  simulation::MemoryBroker broker_;
};

}  // namespace tocsin::app
