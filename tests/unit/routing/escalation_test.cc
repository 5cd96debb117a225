// Escalation and backups: who is told beyond the receivers of a route, when, and that they hear the end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/routing/harness.h"

namespace tocsin::routing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const core::Labels kClimbing{
    {"rule", "nan"}, {"job", "digits"}, {"tensor", "a"}, {"severity", "error"}};
const core::Labels kAlso{
    {"rule", "nan"}, {"job", "digits"}, {"tensor", "b"}, {"severity", "error"}};

class EscalationTest : public ::testing::Test {
 protected:
  EscalationTest() {
    h.integrations = {webhook("oncall"), webhook("second"), webhook("lead")};
    h.tree.group_wait = 0s;
    h.tree.repeat_interval = std::vector<RepeatStep>{{std::nullopt, 24h}};
    h.tree.further.steps = {{{10min, "second", true, {}, 0}, {30min, "lead", true, 30min, 2}}};
    h.open();
  }
  void ack(std::optional<core::Duration> lasts = std::nullopt) {
    Acknowledgement ack;
    ack.id = "ack_one";
    ack.issues = {core::issue_key(kClimbing)};
    ack.by = "ada";
    ack.at = h.now();
    if (lasts) ack.until = h.now() + *lasts;
    ASSERT_TRUE(h.router().on_control("ack/ack_one", ack_json(ack), h.now()));
    h.commit();
  }
  Harness h;
};

TEST_F(EscalationTest, StepsAreCarriedOutAtTheirTimesAndRepeatAsOftenAsTheyMay) {
  h.fire(kClimbing);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  h.at(10min - 1s);
  EXPECT_THAT(h.said(), IsEmpty());
  h.at(10min);
  EXPECT_THAT(h.said(), ElementsAre("escalation open second 1/0"));
  EXPECT_EQ(h.sent.back().why,
            "Escalated to second: neither acknowledged nor resolved 10m after the first message to "
            "oncall.");
  h.at(30min);
  EXPECT_THAT(h.said(), ElementsAre("escalation open lead 1/0"));
  h.at(60min);
  EXPECT_THAT(h.said(), ElementsAre("escalation update lead 1/0"));
  EXPECT_THAT(h.sent.back().why, HasSubstr("Escalated again to lead (repeat 1 of 2)"));
  h.at(90min);
  EXPECT_THAT(h.said(), ElementsAre("escalation update lead 1/0"));
  h.at(5h);
  EXPECT_THAT(h.said(), IsEmpty());
}

TEST_F(EscalationTest, WhoHearsNewsInTheSecondOfAStepIsToldOnce) {
  h.fire(kClimbing);
  h.at(30min);
  h.said();
  h.at(59min);
  h.fire(kAlso);
  h.at(60min);  // the next interval of the group, and the first repeat for lead
  EXPECT_THAT(h.said(), ElementsAre("new_issues update oncall 2/0", "new_issues update second 2/0",
                                    "new_issues update lead 2/0"));
  h.at(90min);
  EXPECT_THAT(h.said(), ElementsAre("escalation update lead 2/0"));
  EXPECT_THAT(h.sent.back().why, HasSubstr("repeat 2 of 2")) << "that step has had its time";
}

// Messages are of several partitions: that the open has arrived may be read after the close.
TEST_F(EscalationTest, TheNextIncidentIsOpenedAlthoughAnEarlierOpenIsHeardOfLast) {
  h.fire(kClimbing);
  h.at(10min);
  h.said();
  const core::Notification open = h.sent.back();  // to second
  h.resolve(kClimbing);
  h.at(15min);
  const auto close = std::find_if(h.sent.rbegin(), h.sent.rend(), [](const auto& one) {
    return one.integration == "second" && one.kind == core::NotificationKind::close;
  });
  ASSERT_NE(close, h.sent.rend());
  const core::Notification closing = *close;
  h.said();
  h.deliver(closing, core::DeliveryState::delivered);
  h.crash();
  h.deliver(open, core::DeliveryState::delivered);
  h.fire(kClimbing);
  h.at(40min);
  const auto said = h.said();
  EXPECT_NE(std::find(said.begin(), said.end(), "escalation open second 1/0"), said.end())
      << ::testing::PrintToString(said);
}

TEST_F(EscalationTest, WhoWasToldHearsTheRestOfTheIncidentAndItsEnd) {
  h.fire(kClimbing);
  h.at(12min);
  h.said();
  h.fire(kAlso);
  h.at(20min);
  EXPECT_THAT(h.said(),
              ElementsAre("new_issues update oncall 2/0", "new_issues update second 2/0"));
  h.resolve(kClimbing);
  h.resolve(kAlso);
  h.at(29min);
  EXPECT_THAT(h.said(), ElementsAre("all_resolved close oncall 0/2 over",
                                    "all_resolved close second 0/2 over"));
  h.at(3h);  // cancelled by the close
  EXPECT_THAT(h.said(), IsEmpty());
  EXPECT_TRUE(h.changelog.lower_bound("ladder/")->first.rfind("ladder/", 0) != 0);
}

TEST_F(EscalationTest, TheNextIncidentClimbsFromItsOwnFirstMessage) {
  h.fire(kClimbing);
  h.at(12min);
  h.resolve(kClimbing);
  h.at(40min);
  h.said();
  h.fire(kClimbing);
  h.at(49min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  h.at(50min);
  EXPECT_THAT(h.said(), ElementsAre("escalation open second 1/0"));
}

TEST_F(EscalationTest, AnAcknowledgementStopsTheClock) {
  h.fire(kClimbing);
  h.at(9min);
  ack(3h);
  h.at(3h + 8min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  h.at(3h + 9min);  // it ends; one minute of the ten is left
  EXPECT_THAT(h.said(), ElementsAre("ack_expired update oncall 1/0"));
  h.at(3h + 10min - 1s);
  EXPECT_THAT(h.said(), IsEmpty());
  h.at(3h + 10min);
  EXPECT_THAT(h.said(), ElementsAre("escalation open second 1/0"));
}

TEST_F(EscalationTest, AStepThatAsksForItComesAlthoughAcknowledged) {
  h.tree.further.steps = {{{10min, "second", false, {}, 0}}};
  h.open();
  h.fire(kClimbing);
  h.at(9min);
  ack();
  h.at(10min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0", "escalation open second 1/0"));
  EXPECT_THAT(h.sent.back().why, HasSubstr("acknowledged, but not resolved 10m after"));
}

TEST_F(EscalationTest, AfterDowntimeOnlyTheHighestStepRuns) {
  h.fire(kClimbing);
  h.at(1min);
  h.said();
  h.stop_until(2h + 5min);
  h.open();
  h.at(2h + 10min);
  EXPECT_THAT(h.said(), ElementsAre("escalation open lead 1/0"));
  h.at(5h);
  EXPECT_THAT(h.said(), IsEmpty());  // its repeats have passed as well
}

TEST_F(EscalationTest, AKillAnywhereChangesNothing) {
  h.fire(kClimbing);
  for (int minute = 1; minute <= 100; ++minute) {
    h.at(minute * 1min);
    h.crash();
  }
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0", "escalation open second 1/0",
                                    "escalation open lead 1/0", "escalation update lead 1/0",
                                    "escalation update lead 1/0"));
}

TEST_F(EscalationTest, NobodyIsPagedForWhatIsSilenced) {
  h.fire(kClimbing);
  h.at(5min);
  h.silenced = {{"tensor", "a"}};
  h.at(22min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  h.silenced.clear();
  h.at(25min);
  EXPECT_THAT(h.said(), ElementsAre("escalation open second 1/0"));
}

TEST_F(EscalationTest, WithoutALadderAnyMoreWhoWasToldIsToldThatItIsOver) {
  h.fire(kClimbing);
  h.at(12min);
  h.said();
  h.tree.further.steps.emplace();
  h.open();
  h.commit();
  EXPECT_THAT(h.said(), ElementsAre("regrouped close second 0/1 over"));
}

TEST_F(EscalationTest, CountsWhatItDid) {
  h.fire(kClimbing);
  h.at(11min);
  ASSERT_EQ(h.further.size(), 1U);
  EXPECT_EQ(h.further[0].step, 0U);
  EXPECT_EQ(h.further[0].receiver, "second");
}

class FallbackTest : public ::testing::Test {
 protected:
  FallbackTest() {
    h.integrations = {webhook("oncall"), webhook("backup"), webhook("last")};
    h.integrations[0].fallback = "backup";
    h.tree.group_wait = 0s;
    h.tree.repeat_interval = std::vector<RepeatStep>{{std::nullopt, 24h}};
  }
  Harness h;
};

TEST_F(FallbackTest, ADeadMessageTellsTheBackupOnceWithWhatFailed) {
  h.open();
  h.fire(kClimbing);
  h.said();
  h.deliver(h.sent.back(), core::DeliveryState::dead);
  h.at(1min);
  EXPECT_THAT(h.said(), ElementsAre("fallback open backup 1/0"));
  EXPECT_EQ(h.sent.back().why, "Sent to backup because oncall did not take this message.");
  h.fire(kAlso);
  h.at(6min);
  EXPECT_THAT(h.said(), ElementsAre("new_issues open oncall 2/0", "new_issues update backup 2/0"));
  h.deliver(h.sent[h.sent.size() - 2], core::DeliveryState::dead);
  h.at(20min);
  EXPECT_THAT(h.said(), IsEmpty());  // once
  h.resolve(kClimbing);
  h.resolve(kAlso);
  h.at(30min);
  // Nothing has arrived at the first: nothing is open there.
  EXPECT_THAT(h.said(), ElementsAre("all_resolved close backup 0/2 over"));
}

TEST_F(FallbackTest, AMessageThatWaitsTooLongCountsAsFailed) {
  h.open();
  h.fire(kClimbing);
  h.said();
  h.at(5min - 1s);
  EXPECT_THAT(h.said(), IsEmpty());
  h.at(5min);
  EXPECT_THAT(h.said(), ElementsAre("fallback open backup 1/0"));
  EXPECT_EQ(h.sent.back().why, "Sent to backup because oncall has not got this message for 5m.");
}

TEST_F(FallbackTest, OneThatArrivesInTimeDoesNot) {
  h.open();
  h.fire(kClimbing);
  h.at(4min);
  h.deliver(h.sent.back(), core::DeliveryState::delivered);
  h.at(1h);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
}

TEST_F(FallbackTest, AWarningMayWait) {
  h.open();
  core::Labels mild = kClimbing;
  mild.set("severity", "warning");
  h.fire(mild);
  h.at(1h);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  h.deliver(h.sent.back(), core::DeliveryState::dead);
  h.at(2h);
  EXPECT_THAT(h.said(), ElementsAre("fallback open backup 1/0"));
}

TEST_F(FallbackTest, TimeThatNobodyDeliveredInDoesNotCount) {
  h.open();
  h.fire(kClimbing);
  h.at(1min);
  h.said();
  h.stop_until(2h);
  h.open();
  h.at(2h + 4min);
  EXPECT_THAT(h.said(), IsEmpty());
  h.at(2h + 6min);
  EXPECT_THAT(h.said(), ElementsAre("fallback open backup 1/0"));
}

TEST_F(FallbackTest, ABackupMayHaveOne) {
  h.integrations[1].fallback = "last";
  h.open();
  h.fire(kClimbing);
  h.deliver(h.sent.back(), core::DeliveryState::dead);
  h.at(1min);
  h.said();
  h.deliver(h.sent.back(), core::DeliveryState::dead);
  h.at(2min);
  EXPECT_THAT(h.said(), ElementsAre("fallback open last 1/0"));
}

TEST_F(FallbackTest, ARouteHasItsOwn) {
  h.integrations[0].fallback.clear();
  h.tree.further.on_failure = FailureStep{2min, "last"};
  h.open();
  core::Labels mild = kClimbing;
  mild.set("severity", "info");
  h.fire(mild);
  h.at(2min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0", "fallback open last 1/0"));
}

TEST_F(FallbackTest, SurvivesAKillBetweenTheFailureAndTheMessage) {
  h.open();
  h.fire(kClimbing);
  h.at(1min);
  h.said();
  h.deliver(h.sent.back(), core::DeliveryState::expired);
  h.crash();
  h.at(2min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0", "fallback open backup 1/0"));
  h.crash();
  h.deliver(h.sent[h.sent.size() - 2], core::DeliveryState::delivered);
  h.deliver(h.sent.back(), core::DeliveryState::delivered);
  h.at(3h);
  EXPECT_THAT(h.said(), IsEmpty());
}

TEST_F(FallbackTest, AnUnknownBackupIsRefusedWithTheNearestName) {
  h.integrations[0].fallback = "backpu";
  const auto made = Router::create(h.tree, {}, h.integrations, h.options);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("did you mean 'backup'?"));
}

}  // namespace
}  // namespace tocsin::routing
