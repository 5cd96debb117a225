// Inhibition: while a source fires, its targets are not told; what was told before stays told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/routing/harness.h"

namespace tocsin::routing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

core::Labels labelled(const std::string& rule, const std::string& job,
                      const std::string& severity = "error") {
  return {{"rule", rule}, {"job", job}, {"severity", severity}};
}

InhibitRule nan_hides_rest() {
  InhibitRule rule;
  rule.name = "nan-hides-rest";
  rule.source_matchers = {"rule=nan"};
  rule.target_matchers = {"rule!=nan"};
  rule.equal = {"job"};
  return rule;
}

class Inhibited : public ::testing::Test {
 protected:
  Inhibited() {
    h.options.suppressors.clear();  // so that quiet groups are passed over
    h.options.inhibit_rules = {nan_hides_rest()};
  }
  Harness h;
};

TEST_F(Inhibited, ATargetIsNotToldWhileASourceOfItsJobFires) {
  h.open();
  h.fire(labelled("nan", "one"));
  h.fire(labelled("slow", "one"));
  h.fire(labelled("slow", "two"));
  h.at(30s);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0", "first open oncall 1/0"));
  for (const auto& note : h.sent) {
    const core::Labels& labels = note.issues.at(0).issue.labels;
    EXPECT_TRUE(labels.get("rule") == "nan" || labels.get("job") == "two");
  }
  EXPECT_EQ(h.router().stats().inhibited, 1U);
  EXPECT_EQ(h.router().stats().inhibitors, 1U);
}

TEST_F(Inhibited, WhenTheSourceEndsTheTargetIsToldAtItsNextLook) {
  h.open();
  h.fire(labelled("nan", "one"));
  h.fire(labelled("slow", "one"));
  h.at(30s);
  h.said();
  h.at(1h);
  h.resolve(labelled("nan", "one"));
  h.at(1h + 6min);
  EXPECT_THAT(h.said(), ::testing::UnorderedElementsAre("all_resolved close oncall 0/1 over",
                                                        "first open oncall 1/0"));
  EXPECT_EQ(h.router().stats().inhibitors, 0U);
}

TEST_F(Inhibited, TheEndOfOneSourceUnmutesNothingWhileAnotherFires) {
  h.options.inhibit_rules[0].source_matchers = {"rule=~\"nan.*\""};
  h.options.inhibit_rules[0].target_matchers = {"rule!~\"nan.*\""};
  h.open();
  h.fire(labelled("nan_loss", "one"));
  h.fire(labelled("nan_weight", "one"));
  h.fire(labelled("slow", "one"));
  h.at(30s);
  h.said();
  h.resolve(labelled("nan_loss", "one"));
  h.at(1h);
  EXPECT_THAT(h.said(), ElementsAre("all_resolved close oncall 0/1 over"));
  h.resolve(labelled("nan_weight", "one"));
  h.at(2h);
  EXPECT_THAT(h.said(), ::testing::UnorderedElementsAre("all_resolved close oncall 0/1 over",
                                                        "first open oncall 1/0"));
}

TEST_F(Inhibited, AbsentLabelsAreEqual) {
  h.options.inhibit_rules[0].equal = {"node", "job"};
  h.open();
  h.fire(labelled("nan", "one"));
  core::Labels elsewhere = labelled("slow", "one");
  elsewhere.set("node", "n1");
  h.fire(elsewhere);
  h.fire(labelled("late", "one"));
  h.at(30s);
  ASSERT_EQ(h.sent.size(), 2U);
  for (const auto& note : h.sent) EXPECT_NE(note.issues.at(0).issue.rule, "late");
}

TEST_F(Inhibited, WhatIsBothIsInhibitedOnlyByWhatIsSourceAlone) {
  h.options.inhibit_rules[0].source_matchers = {"severity=~\"error|critical\""};
  h.options.inhibit_rules[0].target_matchers = {"severity=~\"warning|error\""};
  h.open();
  h.fire(labelled("a", "one", "error"));  // source and target
  h.fire(labelled("b", "one", "error"));
  h.at(30s);
  EXPECT_EQ(h.said().size(), 2U) << "two that are both do not silence each other, nor themselves";
  h.fire(labelled("c", "one", "critical"));
  h.fire(labelled("d", "one", "error"));
  h.at(5min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  EXPECT_EQ(h.sent.back().issues.at(0).issue.rule, "c");
}

TEST_F(Inhibited, ASourceOnBothSidesHidesNoSourceOnOne) {
  h.options.inhibit_rules[0].source_matchers = {"severity=~\"error|critical\""};
  h.options.inhibit_rules[0].target_matchers = {"severity=~\"warning|error\""};
  h.tree.group_wait = 0s;
  h.open();
  h.fire(labelled("c", "one", "critical"));  // source alone
  h.at(1s);
  h.fire(labelled("a", "one", "error"));  // source and target: begins later
  h.fire(labelled("b", "one", "error"));
  h.at(1min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  h.resolve(labelled("a", "one", "error"));  // and ends earlier
  h.at(1h);
  EXPECT_THAT(h.said(), IsEmpty());
}

TEST_F(Inhibited, ARaisedSeverityMakesASource) {
  h.options.inhibit_rules[0].source_matchers = {"severity=critical"};
  h.options.inhibit_rules[0].target_matchers = {"severity!=critical"};
  h.tree.group_wait = 1min;
  h.open();
  h.fire(labelled("a", "one", "error"));
  h.fire(labelled("b", "one", "error"));
  h.at(10s);
  h.fire(labelled("a", "one", "critical"));
  h.at(2min);
  ASSERT_EQ(h.sent.size(), 1U);
  EXPECT_EQ(h.sent[0].issues.at(0).issue.rule, "a");
}

TEST_F(Inhibited, SourcesCountWhoeverHearsOfThem) {
  h.tree.receivers = {"oncall"};
  h.open();
  Silence silence;
  silence.id = "sil_one";
  silence.matchers = "{rule=\"nan\"}";
  silence.starts_at = silence.created_at = h.now();
  silence.ends_at = h.now() + 10h;
  silence.created_by = "me";
  silence.comment = "why";
  ASSERT_TRUE(h.router().on_control("silence/sil_one", silence_json(silence), h.now()));
  h.fire(labelled("nan", "one"));
  h.fire(labelled("slow", "one"));
  h.at(1h);
  EXPECT_THAT(h.said(), IsEmpty());
}

TEST_F(Inhibited, WhatWasToldBeforeStaysToldAndIsClosedOnce) {
  h.options.inhibit_rules[0].equal = {"job"};
  h.tree.group_by = {{"job"}};
  h.tree.repeat_interval = std::vector<RepeatStep>{{std::nullopt, 10min}};
  h.open();
  h.fire(labelled("slow", "one"));
  h.at(30s);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  h.fire(labelled("nan", "one"));
  h.at(6min);
  EXPECT_THAT(h.said(), ElementsAre("new_issues update oncall 1/0"));
  ASSERT_EQ(h.sent.back().suppressed.size(), 1U);
  EXPECT_EQ(h.sent.back().suppressed[0].issue.rule, "slow");
  h.resolve(labelled("nan", "one"));
  h.at(11min);
  EXPECT_THAT(h.said(), ElementsAre("some_resolved update oncall 1/1"));
  h.resolve(labelled("slow", "one"));
  h.at(1h);
  EXPECT_THAT(h.said(), ElementsAre("all_resolved close oncall 0/1 over"));
}

TEST_F(Inhibited, AStopIsNotHeldBack) {
  h.integrations = {webhook("oncall"), webhook("stop")};
  h.integrations[1].purpose = Purpose::stop;
  h.rule_actions = {{"slow", {"stop"}}};
  h.open();
  h.fire(labelled("nan", "one"));
  h.fire(labelled("slow", "one"));
  h.at(30s);
  EXPECT_THAT(h.said(),
              ::testing::UnorderedElementsAre("first open stop 1/0", "first open oncall 1/0"));
}

TEST_F(Inhibited, ASourceCountsFromItsAgeOnAndForAWhileAfterItsEnd) {
  h.options.inhibit_rules[0].source_min_age = 10min;
  h.options.inhibit_rules[0].hold_after = 20min;
  h.tree.group_wait = 0s;
  h.tree.group_interval = 1min;
  h.open();
  h.fire(labelled("nan", "one"));
  h.at(1min);
  h.fire(labelled("slow", "one"));
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0", "first open oncall 1/0"))
      << "the source is too young";
  h.at(15min);
  h.fire(labelled("late", "one"));
  h.at(30min);
  EXPECT_THAT(h.said(), IsEmpty());
  h.resolve(labelled("nan", "one"));
  h.at(49min);
  EXPECT_THAT(h.said(), ElementsAre("all_resolved close oncall 0/1 over"));
  h.at(52min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  EXPECT_EQ(h.sent.back().issues.at(0).issue.rule, "late");
}

TEST_F(Inhibited, AYoungSourceThatEndsHoldsNothing) {
  h.options.inhibit_rules[0].source_min_age = 10min;
  h.options.inhibit_rules[0].hold_after = 20min;
  h.open();
  h.fire(labelled("nan", "one"));
  h.at(1min);
  h.resolve(labelled("nan", "one"));
  h.fire(labelled("slow", "one"));
  h.at(5min);
  EXPECT_EQ(h.sent.back().issues.at(0).issue.rule, "slow");
}

TEST_F(Inhibited, AKillChangesNothingAndAnotherConfigurationCountsFromTheNextLook) {
  h.open();
  h.fire(labelled("nan", "one"));
  h.fire(labelled("slow", "one"));
  h.crash();
  h.at(30s);
  h.crash();
  h.at(1h);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  h.options.inhibit_rules.clear();
  h.open();
  h.at(1h + 6min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  EXPECT_EQ(h.sent.back().issues.at(0).issue.rule, "slow");
}

TEST_F(Inhibited, ATargetIsNotToldBeforeItsSourceHasBeenReadFromTheBacklog) {
  h.open();
  h.stop_until(1h);
  h.open();
  h.router().set_behind(true, h.now());
  core::Issue slow = h.issue(labelled("slow", "one"), core::IssueStatus::firing);
  core::Issue nan = h.issue(labelled("nan", "one"), core::IssueStatus::firing);
  slow.starts_at = nan.starts_at = h.now() - 10min;
  h.report(slow);
  h.router().tick(h.now());
  h.commit();
  EXPECT_THAT(h.said(), IsEmpty());
  h.report(nan);
  h.router().set_behind(false, h.now());
  h.at(2h);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  EXPECT_EQ(h.sent.back().issues.at(0).issue.rule, "nan");
}

TEST_F(Inhibited, ATargetWaitsForWhatWasPublishedBeforeItsTurnAndIsStillToBeRead) {
  h.open();
  h.fire(labelled("slow", "one"));
  h.router().set_read_until(kStart + 29s);
  h.at(31s);
  EXPECT_THAT(h.said(), IsEmpty());
  core::Issue nan = h.issue(labelled("nan", "one"), core::IssueStatus::firing);
  nan.starts_at = nan.time = kStart + 29s;
  h.report(nan);
  h.router().set_read_until(kStart + 30s);
  h.router().tick(h.now());
  h.commit();
  h.at(1min + 1s);
  h.router().set_read_until(h.now());
  h.at(2min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  EXPECT_EQ(h.sent.back().issues.at(0).issue.rule, "nan");
}

TEST_F(Inhibited, ATargetWaitsForASettlingTimeAndNoLonger) {
  h.options.limits.inhibit_settle = 3s;
  h.open();
  h.fire(labelled("slow", "one"));
  h.router().set_read_until(kStart);
  EXPECT_EQ(h.router().next_deadline(), kStart + 30s);
  h.at(32s);
  EXPECT_EQ(h.router().next_deadline(), kStart + 33s);
  EXPECT_THAT(h.said(), IsEmpty());
  h.at(33s);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  EXPECT_EQ(h.router().next_deadline(), kStart + 30s + 5min) << "the grid stays";
}

TEST_F(Inhibited, NoIssueThatIsNoTargetWaitsForWhatIsStillToBeRead) {
  h.open();
  h.fire(labelled("nan", "one"));
  h.router().set_read_until(kStart);
  h.at(30s);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
}

TEST_F(Inhibited, WhatWasFreeWhenTheRouterWentDownIsToldAtItsStart) {
  h.open();
  h.fire(labelled("nan", "one"));
  h.fire(labelled("slow", "one"));
  h.at(30s + 16min);
  h.said();
  h.resolve(labelled("nan", "one"));
  h.stop_until(30s + 21min);
  h.open();
  h.at(30s + 21min);
  EXPECT_THAT(h.said(), ::testing::UnorderedElementsAre("all_resolved close oncall 0/1 over",
                                                        "first open oncall 1/0"));
}

TEST_F(Inhibited, AChangeBehindALateTickHidesNoneBeforeIt) {
  h.options.inhibit_rules[0].source_matchers = {"rule=~\"nan.*\""};
  h.options.inhibit_rules[0].target_matchers = {"rule=slow"};
  h.options.inhibit_rules[0].source_min_age = 1s;
  h.open();
  h.fire(labelled("nan_loss", "one"));
  h.fire(labelled("slow", "one"));
  h.at(31s);
  h.said();
  h.resolve(labelled("nan_loss", "one"));
  h.stop_until(30s + 5min + 400ms);
  h.fire(labelled("nan_weight", "one"));
  h.stop_until(30s + 5min + 500ms);  // only now comes the turn of 5 min 30 s
  h.at(30s + 5min + 600ms);
  EXPECT_THAT(h.said(), ::testing::UnorderedElementsAre("all_resolved close oncall 0/1 over",
                                                        "first open oncall 1/0"));
}

TEST_F(Inhibited, WhatIsOnlyRecordedInhibitsNothing) {
  h.open();
  core::Issue shadow = h.issue(labelled("nan", "one"), core::IssueStatus::firing);
  shadow.shadow = true;
  h.report(shadow);
  h.fire(labelled("slow", "one"));
  h.at(1min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  EXPECT_EQ(h.router().stats().inhibitors, 0U);
}

TEST_F(Inhibited, MatchersThatDoNotParseMakeNoRouter) {
  h.options.inhibit_rules[0].target_matchers = {"rule=~\"(\""};
  const auto made = Router::create(h.tree, {}, h.integrations, h.options);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, ::testing::HasSubstr("nan-hides-rest"));
}

}  // namespace
}  // namespace tocsin::routing
