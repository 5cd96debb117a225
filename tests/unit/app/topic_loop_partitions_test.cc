// Partitions and leases that come and go under the loop around a stage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/app/topic_loop_fixture.h"

namespace tocsin::app {
namespace {

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

/// Two partitions, so that one of them can lose what it was still to read.
class TopicLoopRetentionTest : public TopicLoopTest {
 protected:
  TopicLoopRetentionTest() : TopicLoopTest(2) {}
  void number(std::int32_t partition, int value) {
    core::OutRecord record{"telemetry", "k", std::to_string(value)};
    record.partition = partition;
    record.timestamp = core::nanoseconds(clock_.now());
    broker_.append(std::move(record));
  }
};

TEST_F(TopicLoopRetentionTest, WhoIsOvertakenByRetentionIsNamedAndNobodyElse) {
  auto process = start();
  for (const std::int32_t p : {0, 1}) number(p, 1);
  run(process->loop);
  for (int i = 0; i < 5; ++i) number(1, i);
  broker_.trim("telemetry", 1, 4);
  run(process->loop);
  EXPECT_THAT(process->stage.faulty, testing::ElementsAre(1));
}

TEST_F(TopicLoopRetentionTest, WhatAReplayMissesIsSaid) {
  auto first = start();
  // The state stands behind the third record; what follows is seen again after a crash.
  for (int i = 1; i <= 5; ++i) number(1, i);
  run(first->loop);
  ASSERT_THAT(first->stage.handled, 5);
  first->kill();
  first.reset();
  clock_.advance(30s);
  broker_.trim("telemetry", 1, 5);
  auto second = start();
  run(second->loop, 40);
  EXPECT_THAT(second->stage.faulty, testing::ElementsAre(1));
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

// One input is replayed from its start while new records of the other arrive between its records:
// each is handled once it is live, none is passed over.
TEST(TopicLoopReplay, WhatArrivesOfAnotherInputBetweenReplayedRecordsIsHandledOnce) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    simulation::SimulatedClock clock;
    simulation::BrokerOptions options;
    options.topics = simulation::MemoryBroker::one_partition();
    options.clock = &clock;
    options.seed = seed;  // mixes the inputs of one poll
    simulation::MemoryBroker broker(options);
    core::NullLog log;
    core::NullTelemetry telemetry;
    const auto start = [&](ingest::Transport& transport, Adder& stage) {
      stage.change_wiring().topics = {"telemetry", "registry"};
      stage.snapshot_every = 1000;
      return std::make_unique<TopicLoop>(
          stage, LoopPorts{&transport, &clock, &log, &telemetry, inline_committer(), nullptr});
    };
    const auto run = [&](TopicLoop& loop) {
      for (int i = 0; i < 60; ++i) {
        loop.step(0ms);
        clock.advance(20ms);
      }
    };
    const auto append = [&](const char* topic, int count) {
      for (int i = 0; i < count; ++i) broker.append({topic, "k", "1"});
    };
    append("telemetry", 8);
    append("registry", 1);
    const auto first = broker.connect("p");
    Adder before;
    auto loop = start(*first, before);
    run(*loop);
    ASSERT_EQ(broker.records("issues").size(), 9U);
    broker.die(*first);
    loop.reset();
    clock.advance(30s);
    append("registry", 6);
    append("telemetry", 6);
    const auto second = broker.connect("p");
    Adder after;
    loop = start(*second, after);
    run(*loop);
    EXPECT_EQ(broker.records("issues").size(), 21U) << "seed " << seed;
    loop.reset();
  }
}

}  // namespace
}  // namespace tocsin::app
