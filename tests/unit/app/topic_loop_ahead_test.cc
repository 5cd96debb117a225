// At least once: what may be read ahead of its commit is, and positions never stand before it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/unit/app/topic_loop_fixture.h"

namespace tocsin::app {
namespace {

using simulation::Call;
using simulation::Fault;
using testing::ElementsAre;
using testing::IsEmpty;

/// `true`: state and positions follow in a transaction; `false`: without one.
class AheadTest : public TopicLoopTest, public testing::WithParamInterface<bool> {
 protected:
  /// Number 1 is through: the next commit is 100 ms away.
  std::unique_ptr<Process> start() {
    Adder adder = this->adder();
    adder.snapshot_every = 1'000'000;
    adder.change_wiring().commit_every = 1s;
    adder.change_wiring().take_every = 2;
    auto process = std::make_unique<Process>(
        broker_, [this](auto& transport) { return ports(transport); }, std::move(adder));
    run(process->loop, 10);
    numbers(1, 1);
    for (int i = 0; i < 100 && committed() < 1; ++i) run(process->loop, 1);
    EXPECT_EQ(committed(), 1);
    return process;
  }
  static Adder adder() {
    Adder made(GetParam());
    made.change_wiring().ahead = GetParam();
    return made;
  }
  std::set<std::string> distinct() {
    const auto all = sums();
    return {all.begin(), all.end()};
  }
  static std::set<std::string> expected_set(int count) {
    const auto all = expected(count);
    return {all.begin(), all.end()};
  }
  std::int64_t committed() {
    for (const auto& position : broker_.committed(kGroup)) {
      if (position.where.stream == "telemetry") return position.next;
    }
    return -1;
  }
  /// Fault `kind` for the `which`-th record that is to go ahead.
  void fail_ahead(int which, Fault::Kind kind) {
    broker_.on_call([which, kind, asked = 0](std::string_view, Call call) mutable {
      Fault fault;
      if (call == Call::write_ahead && ++asked == which) fault.kind = kind;
      return fault;
    });
  }
};

TEST_P(AheadTest, AnIssueIsReadableBeforeThePositionBehindItIsCommitted) {
  auto process = start();
  const int commits = process->stage.commits;
  numbers(2, 4);
  process->loop.step(0ms);
  EXPECT_EQ(sums(), expected(4));
  EXPECT_EQ(committed(), 1);
  run(process->loop, 10);
  EXPECT_EQ(committed(), 4);
  EXPECT_GT(process->stage.commits, commits);
  EXPECT_EQ(sums(), expected(4));  // once
}

TEST_P(AheadTest, WithinABatchNobodyWaitsForTheOthers) {
  auto process = start();
  process->stage.handled = 0;
  std::vector<int> seen;  // records handled when each is written
  broker_.on_call([&](std::string_view, Call call) {
    if (call == Call::write_ahead) seen.push_back(process->stage.handled);
    return Fault{};
  });
  numbers(2, 7);
  process->loop.step(0ms);
  EXPECT_THAT(seen, ElementsAre(2, 2, 4, 4, 6, 6));
}

TEST_P(AheadTest, WhatWasLostOnItsWayIsWrittenAgainBeforeItsPositionIsCommitted) {
  auto process = start();
  fail_ahead(2, Fault::Kind::lost);
  numbers(2, 4);
  process->loop.step(0ms);
  EXPECT_THAT(sums(), ElementsAre("1", "3", "10"));
  for (int i = 0; i < 200 && committed() < 4; ++i) run(process->loop, 1);
  ASSERT_EQ(committed(), 4);
  EXPECT_EQ(distinct(), expected_set(4));
  EXPECT_EQ(process->stage.opened, 1);
}

TEST_P(AheadTest, WhereNothingGoesAheadTheCommitWritesIt) {
  auto process = start();
  broker_.on_call([&](std::string_view, Call call) {
    Fault fault;
    if (call == Call::write_ahead) fault.kind = Fault::Kind::refused;
    return fault;
  });
  numbers(2, 4);
  run(process->loop, 2);
  EXPECT_EQ(sums(), expected(4));
}

// One record of a topic that has to wait for the commit holds back those behind it.
TEST_P(AheadTest, RecordsOfOneTopicKeepTheirOrder) {
  auto process = start();
  fail_ahead(2, Fault::Kind::refused);
  numbers(2, 7);
  run(process->loop, 20);
  EXPECT_EQ(sums(), expected(7));
}

TEST_P(AheadTest, AFailedCommitRepeatsWhatWentAhead) {
  auto process = start();
  broker_.fail_next_commits(core::unavailable("away"), 3);
  numbers(2, 3);
  process->loop.step(0ms);
  clock_.advance(100ms);
  run(process->loop, 2);
  EXPECT_EQ(distinct(), expected_set(3));  // some of it twice
  EXPECT_FALSE(process->loop.ready());
  numbers(4, 5);
  run(process->loop, 200);
  EXPECT_EQ(distinct(), expected_set(5));
  EXPECT_EQ(committed(), 5);
  EXPECT_TRUE(process->loop.ready());
}

TEST_P(AheadTest, AKilledProcessIsFollowedWithoutALoss) {
  auto first = start();
  numbers(2, 5);
  first->loop.step(0ms);
  ASSERT_EQ(sums(), expected(5));
  ASSERT_EQ(committed(), 1);
  first->kill();
  first.reset();
  numbers(6, 7);
  clock_.advance(30s);
  Adder adder = this->adder();
  Process second(
      broker_, [this](auto& transport) { return ports(transport); }, std::move(adder));
  run(second.loop, 60);
  EXPECT_EQ(distinct(), expected_set(7));
  EXPECT_EQ(committed(), 7);
}

TEST_P(AheadTest, ACleanEndCommitsBehindWhatWentAhead) {
  auto process = start();
  numbers(2, 3);
  process->loop.step(0ms);
  ASSERT_EQ(committed(), 1);
  process->loop.close();
  EXPECT_EQ(committed(), 3);
  EXPECT_EQ(sums(), expected(3));
}

INSTANTIATE_TEST_SUITE_P(Commits, AheadTest, testing::Bool(), [](const auto& how) {
  return std::string(how.param ? "InATransaction" : "Plainly");
});

TEST_F(TopicLoopTest, NothingIsReadAheadOfATransaction) {
  auto process = start();
  run(process->loop, 10);
  broker_.fail_next_commits(core::unavailable("away"), 1);
  numbers(1, 2);
  process->loop.step(0ms);
  EXPECT_THAT(sums(), IsEmpty());
}

}  // namespace
}  // namespace tocsin::app
