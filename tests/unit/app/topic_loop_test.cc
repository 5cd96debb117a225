// The loop around every stage: what it promises of records, commits and time, whatever the stage does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/app/topic_loop_fixture.h"

namespace tocsin::app {
namespace {

using simulation::Fault;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

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

// A damaged page of the journal, a topic that is gone: nothing behind it is read, however often one asks.
TEST_F(TopicLoopTest, WhatCannotBeReadMakesItWaitAndSayWhyUntilItCan) {
  for (const core::Code code : {core::Code::data_loss, core::Code::failed_precondition}) {
    auto process = start();
    run(process->loop, 20);
    ASSERT_TRUE(process->loop.ready());
    EXPECT_EQ(process->loop.trouble(), "");
    bool damaged = true;
    int polls = 0;
    broker_.on_call([&](std::string_view, simulation::Call call) {
      Fault fault;
      if (call == simulation::Call::poll && damaged) {
        ++polls;
        fault.kind = Fault::Kind::refused;
        fault.error = {code, "page 7 is damaged"};
      }
      return fault;
    });
    for (int i = 0; i < 600; ++i) {  // a minute
      run(process->loop, 1);
      clock_.advance(100ms);
      if (i < 20) continue;
      EXPECT_FALSE(process->loop.ready()) << i;
      EXPECT_THAT(process->loop.trouble(), testing::HasSubstr("page 7 is damaged")) << i;
    }
    EXPECT_LT(polls, 60) << "it asks less and less often";
    damaged = false;
    for (int i = 0; i < 200; ++i) {
      run(process->loop, 1);
      clock_.advance(100ms);
    }
    EXPECT_TRUE(process->loop.ready());
    EXPECT_EQ(process->loop.trouble(), "");
    process->kill();
    broker_.on_call({});
    clock_.advance(30s);
  }
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

TEST_F(TopicLoopTest, ATickIsToldUntilWhenItsInputHasBeenRead) {
  auto process = start();
  run(process->loop, 10);
  EXPECT_EQ(process->stage.unread, 0ms);
  // Of a partition that is never at its end what is older than the newest record has been read.
  for (int i = 0; i < 30; ++i) {
    numbers(1, 3);
    process->loop.step(0ms);
    clock_.advance(20ms);
    numbers(1, 1);
  }
  EXPECT_GE(process->stage.unread, 0ms);
  EXPECT_LE(process->stage.unread, 120ms);
  broker_.fail_next_polls(core::unavailable("away"), -1);
  run(process->loop, 50);
  EXPECT_GE(process->stage.unread, 900ms);
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

}  // namespace
}  // namespace tocsin::app
