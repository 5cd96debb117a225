// First sign first: people are told of what came first; what followed from it is evidence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/routing/harness.h"

namespace tocsin::routing {
namespace {

using core::IssueStatus;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

core::Labels of(std::string_view rule, std::string_view severity = "error") {
  return {{"rule", std::string(rule)}, {"job", "j"}, {"severity", std::string(severity)}};
}

class FirstSign : public ::testing::Test {
 protected:
  void fire(const core::Labels& labels, const std::vector<core::Labels>& causes) {
    core::Issue issue = h.issue(labels, IssueStatus::firing);
    for (const core::Labels& one : causes) {
      core::Cause cause;
      cause.issue_key = core::issue_key(one);
      issue.caused_by.push_back(cause);
    }
    h.report(issue);
  }
  Harness h;
  const core::Labels loss = of("loss"), gradient = of("gradient"), weight = of("weight");
};

TEST_F(FirstSign, OneCauseIsOneMessageWhateverTheGroupsAre) {
  h.open();
  h.fire(loss);
  h.at(1s);
  fire(gradient, {loss});
  fire(weight, {loss, gradient});
  h.at(30s);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 3/0"));
  EXPECT_EQ(h.router().stats().groups, 1U);
  const core::Notification& note = h.sent.front();
  EXPECT_EQ(note.issues.at(0).issue.rule, "loss");
  EXPECT_THAT(note.issues.at(1).issue.caused_by, ::testing::SizeIs(1));
}

class ClockGoesBack : public FirstSign, public ::testing::WithParamInterface<core::Duration> {};

TEST_P(ClockGoesBack, AnEndIsToldAndNothingStaysBehindIt) {
  h.tree.group_interval = 1min;
  h.open();
  h.at(1h);
  h.fire(loss);
  h.at(1h + 30s);
  h.said();
  fire(gradient, {loss});
  h.stop_until(1h - GetParam());
  h.crash();
  core::Issue over = h.issue(loss, IssueStatus::resolved);
  over.starts_at = kStart + 1h;
  over.ends_at = kStart + 1h + 1min;  // by the clock of its producer
  h.report(over);
  h.at(1h - GetParam() + 90s);
  EXPECT_THAT(h.said(), ElementsAre("new_issues update oncall 1/1"));
}

/// Less and more than `max_future`, within which another's clock is believed.
INSTANTIATE_TEST_SUITE_P(FirstSign, ClockGoesBack, ::testing::Values(4min, 50min));

TEST_F(FirstSign, WhatFollowsLaterIsNoNewsAndStandsInTheNextMessage) {
  h.open();
  h.fire(loss);
  h.at(30s);
  h.said();
  fire(gradient, {loss});
  h.at(1h);
  EXPECT_THAT(h.said(), IsEmpty());
  EXPECT_EQ(h.decisions.back().reason, "folded");
  const core::Labels other{{"rule", "loss"}, {"job", "j"}, {"severity", "error"}, {"worker", "1"}};
  h.fire(other);
  h.at(1h + 5min);
  EXPECT_THAT(h.said(), ElementsAre("new_issues update oncall 3/0"));
  h.resolve(gradient);
  h.at(1h + 10min);
  EXPECT_THAT(h.said(), ElementsAre("some_resolved update oncall 2/1"));
}

TEST_F(FirstSign, WhatWasNeverListedEndsWithoutAWord) {
  h.open();
  h.fire(loss);
  h.at(30s);
  h.said();
  fire(gradient, {loss});
  h.at(10min);
  h.resolve(gradient);
  h.at(1h);
  EXPECT_THAT(h.said(), IsEmpty());
  h.resolve(loss);
  h.at(2h);
  EXPECT_THAT(h.said(), ElementsAre("all_resolved close oncall 0/1 over"));
  EXPECT_EQ(h.router().stats().groups, 0U);
}

TEST_F(FirstSign, WithItsCauseGoneItCountsAsItself) {
  h.open();
  h.fire(loss);
  h.at(30s);
  fire(gradient, {loss});
  h.at(10min);
  h.said();
  h.resolve(loss);
  h.at(10min + 30s);
  EXPECT_THAT(h.said(), ElementsAre("new_issues update oncall 1/1"));
}

TEST_F(FirstSign, WorseThanItsCauseIsNewsOfItsOwn) {
  h.open();
  h.fire(of("loss", "warning"));
  h.at(30s);
  h.said();
  fire(of("gradient", "critical"), {of("loss", "warning")});
  h.at(6min);
  EXPECT_THAT(h.said(), ElementsAre("new_issues update oncall 2/0"));
}

TEST_F(FirstSign, WorseThanItsCauseIsToldAfterGroupWaitAndNotAtTheNextInterval) {
  h.open();
  h.fire(of("loss", "warning"));
  h.at(40s);
  h.said();
  fire(of("gradient", "error"), {of("loss", "warning")});
  fire(of("weight", "warning"), {of("loss", "warning")});
  h.at(40s + 29s);
  EXPECT_THAT(h.said(), IsEmpty());
  h.at(40s + 30s);
  EXPECT_THAT(h.said(), ElementsAre("new_issues update oncall 3/0"));
  // One after the other keeps the least gap between messages off the grid, and the grid stays.
  fire(of("update", "critical"), {of("gradient", "error"), of("loss", "warning")});
  h.at(40s + 60s);
  EXPECT_THAT(h.said(), ElementsAre("new_issues update oncall 4/0"));
  fire(of("input", "error"), {of("gradient", "error")});  // as bad as its cause: evidence
  h.at(5min + 30s);
  EXPECT_THAT(h.said(), IsEmpty());
}

TEST_F(FirstSign, InItsOwnGroupWhatIsWorseWaitsForTheInterval) {
  h.tree.group_by = {"job"};
  h.open();
  h.fire(of("loss", "warning"));
  h.at(40s);
  h.said();
  fire(of("gradient", "error"), {of("loss", "warning")});
  h.at(5min);
  EXPECT_THAT(h.said(), IsEmpty());
  h.at(5min + 30s);
  EXPECT_THAT(h.said(), ElementsAre("new_issues update oncall 2/0"));
}

TEST_F(FirstSign, ACauseThatNobodyIsToldOfHidesNothing) {
  h.silenced = {{"rule", "loss"}};
  h.open();
  h.fire(loss);
  fire(gradient, {loss});
  h.at(10min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
}

TEST_F(FirstSign, TwoThatNameEachOtherAreNotBothSilent) {
  h.open();
  h.fire(weight);
  h.at(30s);
  h.said();
  h.at(6min);
  fire(gradient, {weight, loss});
  h.at(6min + 1s);
  fire(loss, {gradient, weight});
  h.resolve(weight);
  h.at(20min);
  EXPECT_THAT(h.said(), ElementsAre("new_issues update oncall 2/1"));
}

TEST_F(FirstSign, ItStaysInTheGroupOfItsCauseAfterACrash) {
  h.open();
  h.fire(loss);
  fire(gradient, {loss});
  h.at(30s);
  h.said();
  h.crash();
  h.fire(gradient);  // a later report: what it followed from stands with its first one
  h.at(1h);
  EXPECT_THAT(h.said(), IsEmpty());
  EXPECT_EQ(h.router().stats().groups, 1U);
  h.resolve(loss);
  h.resolve(gradient);
  h.at(2h);
  EXPECT_THAT(h.said(), ElementsAre("all_resolved close oncall 0/2 over"));
  h.fire(gradient);
  h.at(3h);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
}

TEST_F(FirstSign, TheActionsOfARuleAreCarriedOutForThatRule) {
  h.integrations.push_back(webhook("stop"));
  h.rule_actions.push_back({"loss", {"stop"}});
  h.rule_actions.push_back({"gradient", {"stop"}});
  h.open();
  h.fire(loss);
  h.at(30s);
  h.said();
  fire(gradient, {loss});
  h.at(30min);
  EXPECT_THAT(h.said(), ElementsAre(::testing::EndsWith("stop 1/0")));
}

}  // namespace
}  // namespace tocsin::routing
