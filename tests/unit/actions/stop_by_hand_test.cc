// The stop that a person asks for: which attempt, over what stands in the slot, and who hears of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/json.h"
#include "tests/unit/actions/stops.h"

namespace tocsin::actions {
namespace {

using ::testing::HasSubstr;
using namespace testing_support;
using Asked = StopByHand::Leave;

core::JobEvent a_run(std::uint32_t attempt = 5) {
  core::JobEvent out;
  out.run.uid = kRun;
  out.run.attempt = attempt;
  out.run.job = "digits";
  out.run.ref = fence_value(kFence);
  out.labels = {{"team", "vision"}};
  out.step = 412;
  return out;
}

core::CurrentRun at_present() {
  core::CurrentRun out;
  out.attempt = 5;
  out.launch = {{"h1", "aa/1"}};
  return out;
}

StopByHand asked_by_hand(const std::optional<HeldStop>& held = {}, core::WallTime now = kStart,
                         const StopTerms& terms = {}) {
  return stop_by_hand(terms, a_run().run, at_present(), held, now);
}

HeldStop held_stop(std::uint32_t attempt = 5) {
  HeldStop out;
  out.command = asked_by_hand().command;
  out.command.attempt = attempt;
  out.command.revision = attempt + 2;
  return out;
}

TEST(StopByHand, IsTheCommandOfARuleWithTheFenceOfWhatRunsNow) {
  const StopByHand out = asked_by_hand();
  EXPECT_EQ(out.leave, Asked::send);
  EXPECT_EQ(out.command.command_id, core::command_id(kRun, 5, "stop"));
  EXPECT_EQ(out.command.attempt, 5u);
  EXPECT_EQ(out.command.revision, 5u);
  EXPECT_EQ(out.command.launch.at("h1"), "aa/1");
  EXPECT_EQ(out.command.expires_at, kStart + 10min);
  EXPECT_THAT(core::to_json(out.command.args), HasSubstr(R"("pid":4711)"));
  EXPECT_THAT(core::to_json(out.command.args), HasSubstr(R"("mode":"checkpoint_then_stop")"));
}

TEST(StopByHand, AllRanksLeaveAfterOneStepThatTheFastestHasNotReached) {
  core::CurrentRun four = at_present();
  four.world_size = 4;
  four.step = 1000;
  four.step_at = kStart;
  four.step_seconds = 0.5;
  const auto out = stop_by_hand({}, a_run().run, four, {}, kStart);
  EXPECT_EQ(*core::find(out.command.args, "not_before_step"), core::Value(1010));
}

TEST(StopByHand, WhatIsUnderWayIsNotAskedTwice) {
  EXPECT_EQ(asked_by_hand(held_stop()).leave, Asked::under_way);
  EXPECT_EQ(asked_by_hand(held_stop()).command.revision, 7u);
  HeldStop obeyed = held_stop();
  obeyed.accepted = true;  // and saves a checkpoint for longer than the command could be taken
  EXPECT_EQ(asked_by_hand(obeyed, kStart + 12min).leave, Asked::under_way);
}

TEST(StopByHand, WhatCameToNothingIsAskedAgainWithTheNextRevision) {
  HeldStop refused = held_stop();
  refused.refused = true;
  for (const StopByHand& again :
       {asked_by_hand(refused), asked_by_hand(held_stop(), kStart + 10min),
        asked_by_hand(held_stop(), kStart + 15min)}) {
    EXPECT_EQ(again.leave, Asked::send);
    EXPECT_EQ(again.command.revision, 8u);
  }
  refused.accepted = true;  // one rank did obey
  EXPECT_EQ(asked_by_hand(refused).leave, Asked::under_way);
  HeldStop dry = held_stop();
  dry.command.dry_run = true;
  EXPECT_EQ(asked_by_hand(dry).leave, Asked::send);
}

TEST(StopByHand, OtherTermsAreAnotherRevision) {
  StopTerms terms;
  terms.allow_force = true;
  EXPECT_EQ(asked_by_hand(held_stop(), kStart, terms).leave, Asked::send);
  terms = {};
  terms.mode = "pause";
  EXPECT_EQ(asked_by_hand(held_stop(), kStart, terms).leave, Asked::send);
}

TEST(StopByHand, OneAttemptIsMeantAndNoOther) {
  const auto older = asked_by_hand(held_stop(4));  // was stopped; what runs now was not asked
  EXPECT_EQ(older.leave, Asked::send);
  EXPECT_EQ(older.command.attempt, 5u);
  EXPECT_NE(older.command.command_id, core::command_id(kRun, 4, "stop"));
  EXPECT_EQ(asked_by_hand(held_stop(6)).leave,
            Asked::newer_attempt);  // never over the slot of a newer one
}

TEST(StopByHand, OthersHearOfItAndNoIssueOfItStopsAnything) {
  core::Command command = asked_by_hand().command;
  command.requested_by = "ada@node-7";
  command.reason.summary = "wrong learning rate";
  const core::Issue issue = stopped_by_hand_issue(command, a_run(), "c1");
  EXPECT_EQ(issue.summary, "digits, attempt 5, is stopped by ada@node-7: wrong learning rate");
  EXPECT_EQ(issue.severity, core::Severity::info);
  EXPECT_EQ(issue.labels.get("team"), "vision");
  EXPECT_EQ(issue.labels.get("job"), "digits");
  EXPECT_TRUE(issue.explicit_expiry);
  const auto first = issue.event_id;
  ++command.revision;
  EXPECT_NE(stopped_by_hand_issue(command, a_run(), "c1").event_id, first);

  Workbench bench;
  auto notification = sample_notification();
  notification.issues[0].issue = issue;
  EXPECT_EQ(deliver(*bench.make("stop_training", "{armed: true}"), notification).code,
            "not_firing");
  EXPECT_TRUE(bench.commands.empty());
}

TEST(StopByHand, AStopThatFailedIsTakenUpAgainOnItsNewTerms) {
  StopLadder ladder;
  ladder.on_command(stop_command(), kStart);
  ladder.tick(kStart + 30s);  // SIGTERM
  EXPECT_EQ(ladder.tick(kStart + 3min).transitions.at(0).to, StopState::failed);
  core::Command again = stop_command(true);
  ++again.revision;
  again.issued_at = kStart + 4min;
  EXPECT_THAT(states(ladder.on_command(again, again.issued_at).transitions),
              ::testing::ElementsAre(StopState::cooperative));
  EXPECT_EQ(ladder.tick(kStart + 4min + 30s).signals.size(), 1u);  // its own deadlines
}

TEST(StopByHand, ForceCanBeAllowedWhileTheProcessIsBeingEnded) {
  StopLadder ladder;
  ladder.on_command(stop_command(), kStart);
  ladder.tick(kStart + 30s);  // SIGTERM, grace 20 s
  core::Command again = stop_command(true);
  ++again.revision;
  EXPECT_THAT(ladder.on_command(again, kStart + 35s).transitions, ::testing::IsEmpty());
  const auto step = ladder.tick(kStart + 50s);
  EXPECT_THAT(states(step.transitions), ::testing::ElementsAre(StopState::platform_force));
}

}  // namespace
}  // namespace tocsin::actions
