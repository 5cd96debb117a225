// The loop around every stage, on the broker in memory: what it promises whatever the stage does.
#include "app/topic_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <charconv>
#include <deque>
#include <map>

#include "tests/simulation/broker.h"
#include "tests/simulation/clock.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using simulation::Fault;
using simulation::MemoryBroker;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr const char* kGroup = "tocsin-adder";

/// Adds up the numbers it reads: each record of `telemetry` gives one of `issues` with the sum so
/// far, and the sum is its state. Lost or doubled records show in the sums.
class Adder final : public Stage {
 public:
  Adder() {
    wiring_.name = "adder";
    wiring_.part = "rules";
    wiring_.group = kGroup;
    wiring_.topics = {"telemetry"};
    wiring_.transactional_id = "adder-0";
    wiring_.writer = "adder";
    wiring_.state_topic = "rules-state";
    wiring_.state = StateScope::input_partition;
  }
  [[nodiscard]] const StageWiring& wiring() const override { return wiring_; }
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
  void state_fault(std::int32_t, const core::Error& error, const Instant&) override {
    faults.push_back(error.message);
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
    fresh_.push_back({record.partition, std::move(out)});
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

  int snapshot_every = 3;
  int opened = 0, handled = 0, replayed = 0, commits = 0;
  std::vector<std::int32_t> live, live_now;
  std::vector<std::string> faults;

 private:
  StageWiring wiring_;
  std::map<std::int32_t, long> sums_;
  std::map<std::int32_t, std::int64_t> stands_at_;
  std::vector<StageRecord> fresh_;
};

class TopicLoopTest : public testing::Test {
 protected:
  TopicLoopTest() : broker_(options()) {}

  simulation::BrokerOptions options() {
    simulation::BrokerOptions options;
    options.topics = MemoryBroker::one_partition();
    options.clock = &clock_;
    return options;
  }
  LoopPorts ports(ingest::Transport& transport) {
    return {&transport, &clock_, &log_, &telemetry_, inline_committer(), nullptr};
  }
  struct Process {
    Process(MemoryBroker& where, const std::function<LoopPorts(ingest::Transport&)>& with)
        : broker(where), transport(where.connect("p")), loop(stage, with(*transport)) {}
    void kill() { broker.die(*transport); }
    MemoryBroker& broker;
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
  MemoryBroker broker_;
};

TEST_F(TopicLoopTest, EachRecordOnce) {
  auto process = start();
  numbers(1, 10);
  run(process->loop);
  EXPECT_EQ(sums(), expected(10));
  EXPECT_TRUE(process->loop.ready());
  EXPECT_EQ(broker_.lag(kGroup, {"telemetry"}), 0U);
}

TEST_F(TopicLoopTest, AKilledProcessIsFollowedExactly) {
  auto first = start();
  numbers(1, 7);
  run(first->loop);
  first->kill();
  first.reset();
  numbers(8, 12);
  clock_.advance(30s);  // its session and its transaction are over
  auto second = start();
  run(second->loop, 40);
  EXPECT_EQ(sums(), expected(12));
  EXPECT_EQ(second->stage.replayed, 1);  // 7 was behind the last snapshot
}

TEST_F(TopicLoopTest, AKillBetweenACommitAndItsOutcome) {
  auto first = start();
  run(first->loop, 5);
  numbers(1, 1);
  for (int i = 0; i < 5 && sums().empty(); ++i) first->loop.step(0ms);
  ASSERT_THAT(sums(), SizeIs(1));  // committed; the next step would learn of it
  ASSERT_EQ(first->stage.commits, 0);
  first->kill();
  first.reset();
  clock_.advance(30s);
  numbers(2, 3);
  auto second = start();
  run(second->loop, 40);
  EXPECT_EQ(sums(), expected(3));
}

TEST_F(TopicLoopTest, AFailedCommitIsRepeatedWithMoreBehindIt) {
  auto process = start();
  run(process->loop, 5);
  broker_.fail_next_commits(core::unavailable("away"), 3);
  numbers(1, 2);
  run(process->loop, 3);
  EXPECT_THAT(sums(), IsEmpty());
  EXPECT_FALSE(process->loop.ready());
  numbers(3, 4);
  run(process->loop, 200);
  EXPECT_EQ(sums(), expected(4));
  EXPECT_EQ(process->stage.opened, 1);  // nothing was read back for it
  EXPECT_TRUE(process->loop.ready());
}

TEST_F(TopicLoopTest, ACommitOfUnknownOutcomeStartsOver) {
  auto process = start();
  run(process->loop, 5);
  int asked = 0;
  broker_.on_call([&](std::string_view, simulation::Call call) {
    Fault fault;
    if (call == simulation::Call::commit && ++asked == 1) {
      fault.kind = Fault::Kind::lost;
      fault.error = {core::Code::failed_precondition, "nobody knows"};
    }
    return fault;
  });
  numbers(1, 4);
  run(process->loop, 100);
  EXPECT_EQ(sums(), expected(4));
  EXPECT_EQ(process->stage.opened, 2);
}

TEST_F(TopicLoopTest, RefusedRecordsGoToTheDlqOnce) {
  auto process = start();
  numbers(1, 2);
  text("bad");
  text("boom");
  numbers(3, 3);
  run(process->loop);
  EXPECT_EQ(sums(), expected(3));
  std::vector<std::string> reasons;
  for (const auto& stored : broker_.records("dlq")) {
    for (const auto& [name, value] : stored.record.headers) {
      if (name == "error-code") reasons.push_back(value);
    }
  }
  EXPECT_THAT(reasons, ElementsAre("bad_number", "handler_failed"));
  process->kill();
  process.reset();
  clock_.advance(30s);
  auto second = start();
  second->stage.snapshot_every = 1000;
  run(second->loop, 40);
  EXPECT_THAT(broker_.records("dlq"), SizeIs(2));  // the replay passes over them in silence
}

TEST_F(TopicLoopTest, ALostPartitionTakesItsPendingOutput) {
  auto process = start();
  numbers(1, 2);
  run(process->loop, 10);
  broker_.fail_next_commits(core::unavailable("away"), 1);
  numbers(3, 3);
  process->loop.step(0ms);
  broker_.rebalance(kGroup, true);
  run(process->loop, 100);
  EXPECT_EQ(sums(), expected(3));
}

// The back-off of a commit ends with what was to be committed.
TEST_F(TopicLoopTest, ALoopWhoseFailingOutputWentWithItsPartitionsIsReadyAgain) {
  auto first = start();
  run(first->loop, 10);
  ASSERT_TRUE(first->loop.ready());
  broker_.fail_next_commits(core::unavailable("away"), -1);
  numbers(1, 3);
  run(first->loop, 10);
  ASSERT_FALSE(first->loop.ready());
  // The one partition goes to another process, and the broker is well again.
  auto second = start();
  const auto both = [&](int steps) {
    for (int i = 0; i < steps; ++i) {
      first->loop.step(0ms);
      second->loop.step(0ms);
      clock_.advance(20ms);
    }
  };
  for (std::uint64_t salt = 1; second->stage.live.empty() && salt < 20; ++salt) {
    broker_.rebalance(kGroup, true, salt);
    both(10);
  }
  ASSERT_FALSE(second->stage.live.empty());
  broker_.heal();
  both(300);
  EXPECT_EQ(sums(), expected(3));
  EXPECT_TRUE(second->loop.ready());
  EXPECT_TRUE(first->loop.ready());
}

TEST_F(TopicLoopTest, AnOrderlyHandOverCommitsFirst) {
  auto process = start();
  run(process->loop, 10);
  numbers(1, 5);
  process->loop.step(0ms);
  broker_.rebalance(kGroup);
  run(process->loop, 50);
  EXPECT_EQ(sums(), expected(5));
}

TEST_F(TopicLoopTest, LivenessIsATimeNotAnInstant) {
  auto process = start();
  run(process->loop, 10);
  EXPECT_THAT(process->stage.live_now, ElementsAre(0));
  // A partition that is never at its end is live as long as what is read is young.
  for (int i = 0; i < 300; ++i) {
    numbers(1, 3);
    process->loop.step(0ms);
    clock_.advance(20ms);
    numbers(1, 1);
  }
  EXPECT_THAT(process->stage.live_now, ElementsAre(0));
  // Nothing can be read any more: after two seconds nobody knows whether it is quiet.
  broker_.fail_next_polls(core::unavailable("away"), -1);
  numbers(1, 1);
  run(process->loop, 150);
  EXPECT_THAT(process->stage.live_now, IsEmpty());
}

TEST_F(TopicLoopTest, AWallClockThatJumpsBlindsNobody) {
  auto process = start();
  run(process->loop, 10);
  clock_.jump(-1h);
  numbers(1, 3);
  run(process->loop, 20);
  EXPECT_THAT(process->stage.live_now, ElementsAre(0));
  clock_.jump(3h);
  numbers(4, 5);
  run(process->loop, 20);
  EXPECT_THAT(process->stage.live_now, ElementsAre(0));
  EXPECT_EQ(sums(), expected(5));
}

TEST_F(TopicLoopTest, TheBrokerIsAwayAtFirst) {
  broker_.fail_next_polls(core::unavailable("away"), 5);
  auto process = start();
  numbers(1, 3);
  run(process->loop, 600);
  EXPECT_EQ(sums(), expected(3));
}

TEST_F(TopicLoopTest, WhatCannotBeReadBackIsToldAndNotTakenForNothing) {
  auto first = start();
  numbers(1, 6);
  run(first->loop);
  first->kill();
  first.reset();
  clock_.advance(30s);
  core::OutRecord damaged{"rules-state", "other", "no number"};
  damaged.partition = 0;
  broker_.append(std::move(damaged));
  auto second = start();
  run(second->loop, 40);
  EXPECT_THAT(second->stage.faults, SizeIs(1));
}

TEST_F(TopicLoopTest, ALeaderHasNothingOpenWithoutTheLease) {
  class Led final : public Stage {
   public:
    Led() {
      wiring_.name = "led";
      wiring_.part = "router";
      wiring_.group = "tocsin-led";
      wiring_.topics = {"issues"};
      wiring_.leader = true;
      wiring_.transactional_id = "led";
    }
    [[nodiscard]] const StageWiring& wiring() const override { return wiring_; }
    core::Status open(const Instant&) override { return ++opened, core::ok(); }
    std::optional<Refusal> handle(const core::RecordView&, const StageContext&) override {
      ++handled;
      return std::nullopt;
    }
    StageOutput take(const Instant&) override { return {}; }
    int opened = 0, handled = 0;

   private:
    StageWiring wiring_;
  };
  const auto one = broker_.connect("one");
  const auto two = broker_.connect("two");
  Leadership first(std::move(*one->lease("router-lease")), clock_, log_, telemetry_);
  Leadership second(std::move(*two->lease("router-lease")), clock_, log_, telemetry_);
  Led a;
  Led b;
  LoopPorts ports_a = ports(*one);
  LoopPorts ports_b = ports(*two);
  ports_a.leadership = &first;
  ports_b.leadership = &second;
  TopicLoop loop_a(a, ports_a);
  TopicLoop loop_b(b, ports_b);
  const auto turn = [&](int times, bool with_first) {
    for (int i = 0; i < times; ++i) {
      if (with_first) first.step(0ms);
      second.step(0ms);
      if (with_first) loop_a.step(0ms);
      loop_b.step(0ms);
      clock_.advance(500ms);
    }
  };
  turn(4, true);
  EXPECT_EQ(a.opened, 1);
  EXPECT_EQ(b.opened, 0);
  EXPECT_TRUE(loop_b.ready());  // standing by is ready
  // The first one is frozen: two thirds of the session later it no longer trusts its lease, and
  // only after the whole session does the second one get it.
  const core::Duration frozen = clock_.monotonic();
  while (second.term() == 0 && clock_.monotonic() - frozen < 60s) {
    EXPECT_FALSE(first.term() != 0 && second.term() != 0);
    turn(1, false);
  }
  EXPECT_LE(clock_.monotonic() - frozen, 12s);
  EXPECT_EQ(first.term(), 0U);
  turn(2, false);
  EXPECT_EQ(b.opened, 1);
  broker_.append({"issues", "k", "x"});
  loop_a.step(0ms);  // it thaws and must not touch anything
  turn(6, true);
  EXPECT_EQ(a.handled, 0);
  EXPECT_EQ(b.handled, 1);
  EXPECT_EQ(first.term(), 0U);
}

}  // namespace
}  // namespace tocsin::app
