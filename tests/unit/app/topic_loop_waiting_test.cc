// Records that mean something only beside the positions: they are committed when those are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/app/topic_loop_fixture.h"

namespace tocsin::app {
namespace {

using testing::IsEmpty;

class TopicLoopWaitingTest : public TopicLoopTest {
 protected:
  std::unique_ptr<Process> start_waiting(int snapshot_every) {
    Adder adder;
    adder.sums_wait = true;
    adder.snapshot_every = snapshot_every;
    adder.change_wiring().commit_every = 500ms;
    return std::make_unique<Process>(
        broker_, [this](auto& transport) { return ports(transport); }, std::move(adder));
  }
  std::uint64_t lag() { return broker_.lag(kGroup, {"telemetry"}); }
};

TEST_F(TopicLoopWaitingTest, TheyAreCommittedWithThePositionsAndNoSooner) {
  auto process = start_waiting(1000);
  run(process->loop, 30);
  const int before = process->stage.commits;
  numbers(1, 2);
  run(process->loop, 1);
  numbers(3, 4);
  run(process->loop, 30);
  EXPECT_EQ(sums(), expected(4));
  EXPECT_EQ(lag(), 0U);
  const int commits = process->stage.commits - before;
  EXPECT_GE(commits, 1);
  EXPECT_LE(commits, 2);  // the first may be due already
  numbers(5, 5);
  run(process->loop, 3);
  numbers(6, 6);
  run(process->loop, 3);
  EXPECT_EQ(sums(), expected(4));
  EXPECT_EQ(lag(), 2U);
  EXPECT_TRUE(process->loop.ready());
}

TEST_F(TopicLoopWaitingTest, WhatIsCommittedAtOnceTakesThemAlong) {
  auto process = start_waiting(3);
  run(process->loop, 30);
  numbers(1, 1);
  run(process->loop, 5);
  const auto first = sums();
  numbers(2, 3);  // with the third comes a snapshot, which does not wait
  run(process->loop, 3);
  EXPECT_EQ(sums(), expected(3));
  EXPECT_EQ(lag(), 0U);
  EXPECT_LE(first.size(), 1U);
}

TEST_F(TopicLoopWaitingTest, AKillBeforeTheCommitLosesAndDoublesNothing) {
  auto first = start_waiting(1000);
  run(first->loop, 30);
  numbers(1, 1);
  run(first->loop, 3);  // due already
  ASSERT_EQ(sums(), expected(1));
  numbers(2, 4);
  run(first->loop, 3);
  ASSERT_EQ(sums(), expected(1));
  first->kill();
  first.reset();
  clock_.advance(30s);
  numbers(5, 6);
  auto second = start_waiting(1000);
  run(second->loop, 60);
  EXPECT_EQ(sums(), expected(6));
  EXPECT_EQ(lag(), 0U);
}

TEST_F(TopicLoopWaitingTest, ACommitThatFailedCarriesThemAgain) {
  auto process = start_waiting(1000);
  run(process->loop, 30);
  broker_.fail_next_commits(core::unavailable("away"), 2);
  numbers(1, 3);
  run(process->loop, 3);
  EXPECT_THAT(sums(), IsEmpty());
  run(process->loop, 200);
  EXPECT_EQ(sums(), expected(3));
  EXPECT_EQ(lag(), 0U);
}

}  // namespace
}  // namespace tocsin::app
