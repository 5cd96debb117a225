// What is known of a run: the newest attempt wins, an end is never taken back.
#include "app/stages/run_board.h"

#include <gtest/gtest.h>

namespace tocsin::app {
namespace {

const core::RunUid kRun = core::run_uid_v5("board");

core::JobEvent job(core::JobPhase phase, std::uint32_t attempt, int second) {
  core::JobEvent event;
  event.phase = phase;
  event.run.uid = kRun;
  event.run.attempt = attempt;
  event.time = core::WallTime{} + std::chrono::seconds(second);
  return event;
}

TEST(RunBoard, KnowsNothingOfARunNobodySpokeOf) { EXPECT_FALSE(RunBoard().find(kRun)); }

TEST(RunBoard, TheNewestAttemptWinsWhicheverWayItIsHeardOf) {
  RunBoard board;
  auto first = job(core::JobPhase::started, 7, 1);
  first.launch = {{"n1", "aa/1"}};
  board.note(first);
  EXPECT_EQ(board.find(kRun)->attempt, 7U);
  EXPECT_EQ(board.find(kRun)->launch.at("n1"), "aa/1");
  board.note_attempt(kRun, 9);  // an issue was quicker than its job
  EXPECT_EQ(board.find(kRun)->attempt, 9U);
  EXPECT_TRUE(board.find(kRun)->launch.empty());  // the launch of attempt 7 is not its
  board.note(job(core::JobPhase::heartbeat, 7, 5));
  EXPECT_EQ(board.find(kRun)->attempt, 9U);
}

TEST(RunBoard, AnEndIsNotTakenBackByALateHeartbeat) {
  RunBoard board;
  board.note(job(core::JobPhase::started, 1, 1));
  board.note(job(core::JobPhase::ended, 1, 10));
  board.note(job(core::JobPhase::heartbeat, 1, 9));
  EXPECT_TRUE(board.find(kRun)->ended);
  board.note(job(core::JobPhase::started, 2, 11));
  EXPECT_FALSE(board.find(kRun)->ended);
}

TEST(RunBoard, RunningIsWhatHasNotEndedAndIsHeardOf) {
  RunBoard board;
  const auto at = [](int second) { return core::WallTime{} + std::chrono::seconds(second); };
  auto first = job(core::JobPhase::started, 1, 1);
  first.run.job = "bert";
  first.labels = {{"team", "nlp"}};
  board.note(first);
  board.note_attempt(core::run_uid_v5("only an issue"), 1);
  const auto running = board.running(at(60));
  ASSERT_EQ(running.size(), 1U);
  EXPECT_EQ(running[0].run.job, "bert");
  EXPECT_EQ(running[0].labels.get("team"), "nlp");
  EXPECT_TRUE(board.running(at(1 + 16 * 60)).empty());  // its machine is gone
  board.note(job(core::JobPhase::heartbeat, 1, 1000));
  EXPECT_EQ(board.running(at(1001)).size(), 1U);
  board.note(job(core::JobPhase::ended, 1, 1002));
  EXPECT_TRUE(board.running(at(1003)).empty());
}

TEST(RunBoard, HeartbeatsMoveTheStepOn) {
  RunBoard board;
  auto beat = job(core::JobPhase::heartbeat, 1, 2);
  beat.step = 40;
  beat.step_seconds = 0.5;
  board.note(beat);
  auto older = job(core::JobPhase::heartbeat, 1, 1);
  older.step = 20;
  board.note(older);
  EXPECT_EQ(board.find(kRun)->step, 40);
  EXPECT_EQ(board.find(kRun)->step_seconds, 0.5);
  EXPECT_EQ(board.find(kRun)->step_at, beat.time);
  EXPECT_EQ(board.find(kRun)->paces, 1U);
}

TEST(RunBoard, APaceIsCountedOnceThoughItsEventComesInTwoTopics) {
  RunBoard board;
  auto beat = job(core::JobPhase::heartbeat, 1, 2);
  beat.step = 1;
  beat.step_seconds = 0.5;
  board.note(beat);
  board.note(beat);
  beat.time += std::chrono::milliseconds(20);  // a rank has joined
  beat.step = 2;
  board.note(beat);
  EXPECT_EQ(board.find(kRun)->paces, 1U) << "that of the first steps, which are slow";
  beat.time += std::chrono::seconds(1);
  board.note(beat);
  EXPECT_EQ(board.find(kRun)->paces, 2U);
  beat.time += std::chrono::milliseconds(1);
  beat.step = 6;
  board.note(beat);
  EXPECT_EQ(board.find(kRun)->paces, 3U);
}

}  // namespace
}  // namespace tocsin::app
