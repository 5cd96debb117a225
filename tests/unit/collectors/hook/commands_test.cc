// Which commands a worker obeys, and what it answers to the others.
#include "collectors/hook/client/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectors/hook/tocsin_client.h"
#include "tests/unit/collectors/hook/fixture.h"

namespace tocsin::hook {
namespace {

using ::testing::ElementsAre;

class CommandsTest : public ::testing::Test {
 protected:
  static SessionOptions options() {
    SessionOptions out;
    out.identity = make_identity();
    out.incarnation = 42;
    return out;
  }
  static core::Command stop() {
    core::Command command;
    command.command_id = "cmd_1";
    command.action = "stop";
    command.run = make_identity().run;
    command.launch = {{"n1", "1f0c93ab/81402118843000"}};
    command.args = core::ValueMap{{"mode", "stop"}};
    return command;
  }
  void take(const core::Command& command) { take(ingest::encode_command(command, "/test")); }
  void take(const core::OutRecord& record) {
    with_view(record, [&](const core::RecordView& view) { board_.take(view, clock_.now()); });
  }
  /// "phase reason" of every answer since the last call.
  std::vector<std::string> answers() {
    std::vector<std::string> out;
    for (const core::OutRecord& record : Drained(queue_).others) {
      with_view(record, [&](const core::RecordView& view) {
        const auto ack = ingest::decode_ack(view);
        ASSERT_TRUE(ack) << ack.error().message;
        acks_.push_back(*ack);
        out.push_back(ack->phase + (ack->reason.empty() ? "" : " " + ack->reason));
      });
    }
    return out;
  }

  ManualClock clock_;
  SendQueue queue_{1 << 20};
  Session session_{options(), make_plan(), clock_, queue_};
  CommandBoard board_{session_};
  std::vector<core::Ack> acks_;
};

TEST_F(CommandsTest, StopForThisLaunchIsTakenAndSaysWhoAnswers) {
  take(stop());
  EXPECT_EQ(board_.ask(0), TOCSIN_WANTS_STOP);
  EXPECT_THAT(answers(), ElementsAre("received"));
  EXPECT_EQ(acks_[0].revision, 1U);
  EXPECT_EQ(acks_[0].incarnation, 42U);
  EXPECT_EQ(acks_[0].node, "n1");
  EXPECT_EQ(acks_[0].effective_step, 0);
}

// The launch before this one was stopped by a rule; its command is still in the topic.
TEST_F(CommandsTest, StopOfAnEarlierLaunchDoesNotStopThisOne) {
  core::Command old = stop();
  old.launch = {{"n1", "1f0c93ab/81402118842999"}};
  take(old);
  EXPECT_EQ(board_.bits(), 0);
  EXPECT_THAT(answers(), ElementsAre("refused stale"));
  take(old);  // read again
  EXPECT_TRUE(answers().empty());
}

TEST_F(CommandsTest, StopForAnotherBootOrAnotherNodeOrNoLaunchIsStale) {
  core::Command command = stop();
  command.launch = {{"n1", "2f0c93ab/99402118843000"}};
  take(command);
  command.command_id = "cmd_2";
  command.launch = {{"n2", "1f0c93ab/99402118843000"}};
  take(command);
  command.command_id = "cmd_3";
  command.launch.clear();
  take(command);
  EXPECT_EQ(board_.bits(), 0);
  EXPECT_THAT(answers(), ElementsAre("refused stale", "refused stale", "refused stale"));
}

TEST_F(CommandsTest, TheLaunchDecidesAndNotTheAttempt) {
  core::Command command = stop();
  command.attempt = 1'767'323'999;  // as the engine settled it: not what our frames say
  take(command);
  EXPECT_EQ(board_.ask(0), TOCSIN_WANTS_STOP);
}

// A rank of the same attempt started after the writer had read who runs: it writes again.
TEST_F(CommandsTest, NextRevisionThatKnowsThisWorkerIsObeyed) {
  core::Command command = stop();
  command.launch = {{"n1", "1f0c93ab/1"}};
  take(command);
  command.revision = 2;
  command.launch = stop().launch;
  take(command);
  EXPECT_EQ(board_.ask(0), TOCSIN_WANTS_STOP);
  EXPECT_THAT(answers(), ElementsAre("refused stale", "received"));
  EXPECT_EQ(board_.revision_of("stop", "cmd_1"), 2U);
  EXPECT_EQ(board_.revision_of("stop", "cmd_other"), 1U);
}

TEST_F(CommandsTest, CaptureNeedsNoLaunchButObeysOne) {
  core::Command command = stop();
  command.action = "capture";
  command.launch.clear();
  command.args = core::ValueMap{};
  take(command);
  EXPECT_THAT(answers(), ElementsAre("received"));
  command.revision = 2;
  command.launch = {{"n1", "1f0c93ab/1"}};
  take(command);
  EXPECT_THAT(answers(), ElementsAre("refused stale"));
}

TEST_F(CommandsTest, EachAskerOfCapturesHasASlot) {
  core::Command command = stop();
  command.launch.clear();
  command.args = core::ValueMap{};
  for (const char* action : {"capture", "capture/mine", "capture/other"}) {
    command.action = action;
    take(command);
  }
  EXPECT_THAT(answers(), ElementsAre("received", "received", "received"));
  command.action = "capture/";
  take(command);
  EXPECT_THAT(answers(), ElementsAre("refused stale")) << "no asker, so no slot of captures";
}

TEST_F(CommandsTest, WhereAProcessStandsIsAskedOfEveryLaunch) {
  core::Command command = stop();
  command.action = "profile";
  command.launch.clear();
  take(command);
  EXPECT_THAT(answers(), ElementsAre("refused unsupported"));
  board_.register_slot("profile");
  ++command.revision;
  take(command);
  EXPECT_THAT(answers(), ElementsAre("received"));
  EXPECT_THAT(board_.unseen(), ElementsAre("profile"));
}

TEST_F(CommandsTest, AskersOfCapturesAreLimited) {
  core::Command command = stop();
  command.launch.clear();
  command.args = core::ValueMap{};
  for (int i = 0; i < 64; ++i) {
    command.action = "capture/" + std::to_string(i);
    take(command);
  }
  (void)answers();
  command.action = "capture/one_more";
  take(command);
  EXPECT_THAT(answers(), ElementsAre("refused too_many"));
}

// Another client of the node takes over reading and begins at the beginning.
TEST_F(CommandsTest, ReadingAgainBringsNoWithdrawnStopBack) {
  take(stop());
  take(ingest::withdraw_command(make_identity().run, "stop"));
  EXPECT_EQ(board_.bits(), 0);
  (void)answers();
  take(stop());
  EXPECT_EQ(board_.bits(), 0);
  EXPECT_TRUE(answers().empty());
}

TEST_F(CommandsTest, OlderRevisionsAndOtherCommandsOfTheSameRevisionAreRefused) {
  core::Command command = stop();
  command.revision = 3;
  take(command);
  command.command_id = "cmd_2";
  take(command);
  command.revision = 2;
  take(command);
  EXPECT_THAT(answers(), ElementsAre("received", "refused duplicate", "refused stale"));
}

TEST_F(CommandsTest, WhatIsNotSeenInTimeExpiresAndIsNotTakenAgain) {
  core::Command command = stop();
  command.expires_at = clock_.now() + std::chrono::seconds(10);
  take(command);
  EXPECT_EQ(board_.expire(clock_.now()), command.expires_at);
  clock_.advance(std::chrono::seconds(10));
  EXPECT_EQ(board_.expire(clock_.now()), std::nullopt);
  EXPECT_EQ(board_.bits(), 0);
  take(command);
  EXPECT_THAT(answers(), ElementsAre("received", "refused expired"));
}

TEST_F(CommandsTest, StopForALaterStepSaysWhereThisRankWillLeave) {
  core::Command command = stop();
  command.args = core::ValueMap{{"mode", "stop"}, {"not_before_step", std::int64_t{5}}};
  take(command);
  EXPECT_EQ(board_.ask(4), 0);
  EXPECT_EQ(board_.ask(5), TOCSIN_WANTS_STOP);
  (void)answers();
  EXPECT_EQ(acks_[0].effective_step, 5);
}

core::Command leaving_after(core::Command command, std::int64_t step, std::uint64_t revision) {
  command.args = core::ValueMap{{"mode", "stop"}, {"not_before_step", step}};
  command.revision = revision;
  return command;
}

// The other ranks left at the end of step 5, or wait for this one at step 6: it may not leave alone.
TEST_F(CommandsTest, ARankThatHasPassedItsStepUnseenSaysSoAndObeysTheNextRevision) {
  EXPECT_EQ(board_.ask(5), 0);
  take(leaving_after(stop(), 5, 1));
  EXPECT_EQ(board_.ask(6), 0);
  EXPECT_EQ(board_.read("stop"), std::nullopt);
  take(leaving_after(stop(), 5, 1));  // read again
  take(leaving_after(stop(), 20, 2));
  EXPECT_EQ(board_.ask(19), 0);
  EXPECT_EQ(board_.ask(20), TOCSIN_WANTS_STOP);
  EXPECT_THAT(answers(), ElementsAre("refused too_late", "received"));
  EXPECT_EQ(acks_[1].effective_step, 20);
  EXPECT_EQ(board_.received(), 1U);
}

TEST_F(CommandsTest, ALaterStepForARankThatHasHeardInTimeReplacesTheFirst) {
  EXPECT_EQ(board_.ask(4), 0);
  take(leaving_after(stop(), 5, 1));
  take(leaving_after(stop(), 9, 2));
  EXPECT_EQ(board_.ask(5), 0);
  EXPECT_EQ(board_.ask(9), TOCSIN_WANTS_STOP);
  EXPECT_THAT(answers(), ElementsAre("received", "received"));
}

TEST_F(CommandsTest, WhoIsLeavingIsNotTooLateForALaterRevision) {
  take(leaving_after(stop(), 5, 1));
  EXPECT_EQ(board_.ask(5), TOCSIN_WANTS_STOP);
  EXPECT_TRUE(board_.read("stop"));
  take(leaving_after(stop(), 5, 2));
  EXPECT_EQ(board_.ask(5), TOCSIN_WANTS_STOP);
  EXPECT_THAT(answers(), ElementsAre("received", "received"));
}

// A loop that asks once per epoch: all ranks ask at the same steps.
TEST_F(CommandsTest, ALoopThatAsksSeldomLeavesWhenItAsksNext) {
  take(leaving_after(stop(), 5, 1));
  EXPECT_EQ(board_.ask(40), TOCSIN_WANTS_STOP);
}

}  // namespace
}  // namespace tocsin::hook
