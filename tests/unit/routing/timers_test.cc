// Groups and their timers on a virtual clock: waiting, intervals, the urgent lane, catching up,
// limits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/routing/harness.h"

namespace tocsin::routing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

core::Labels timed_tensor(const std::string& name) {
  return {{"rule", "nan"}, {"job", "j"}, {"tensor", name}};
}
core::Labels job(const std::string& name) { return {{"rule", "nan"}, {"job", name}}; }

class Timers : public ::testing::Test {
 protected:
  std::vector<std::int64_t> seconds() const {
    std::vector<std::int64_t> out;
    for (const auto& note : h.sent) out.push_back((note.decided_at - kStart) / 1s);
    return out;
  }
  Harness h;
};

TEST_F(Timers, AnOldIssueDoesNotWaitAgain) {
  h.open();
  core::Issue issue = h.issue(timed_tensor("a"), core::IssueStatus::firing);
  issue.starts_at = kStart - 1min;
  h.report(issue);
  h.at(0s);
  EXPECT_THAT(seconds(), ElementsAre(0));
}

TEST_F(Timers, WithoutAWaitTheFirstMessageIsDueAtOnce) {
  h.tree.group_wait = 0s;
  h.open();
  h.fire(timed_tensor("a"));
  EXPECT_THAT(seconds(), ElementsAre(0)) << "without a tick";
  EXPECT_EQ(*h.router().next_deadline(), kStart + 5min);
}

TEST_F(Timers, AResolveInTheSamePollDoesNotHideWhatIsToldAtOnce) {
  h.tree.group_wait = 0s;
  h.open();
  h.router().on_issue(h.issue(timed_tensor("a"), core::IssueStatus::firing), h.now());
  h.router().on_issue(h.issue(timed_tensor("a"), core::IssueStatus::resolved), h.now());
  h.at(5min);
  h.commit();
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0", "all_resolved close oncall 0/1 over"));
}

TEST_F(Timers, MembersThatComeLaterDoNotMoveTheTimer) {
  h.open();
  h.fire(timed_tensor("a"));
  h.at(29s);
  h.fire(timed_tensor("b"));
  h.at(1min);
  EXPECT_THAT(seconds(), ElementsAre(30));
  h.fire(timed_tensor("c"));
  h.at(10min);
  EXPECT_THAT(seconds(), ElementsAre(30, 330));
}

TEST_F(Timers, GroupsHaveTimersOfTheirOwn) {
  h.open();
  h.fire(job("one"));
  h.at(10s);
  h.fire(job("two"));
  h.at(2min);
  EXPECT_THAT(seconds(), ElementsAre(30, 40));
  EXPECT_EQ(h.router().stats().groups, 2U);
}

TEST_F(Timers, AGroupThatComesAgainIsANewGeneration) {
  h.open();
  h.fire(timed_tensor("a"));
  h.at(30s);
  h.resolve(timed_tensor("a"));
  h.at(10min);
  h.fire(timed_tensor("a"));
  h.at(11min);
  ASSERT_EQ(h.sent.size(), 3U);
  EXPECT_EQ(h.sent[1].generation, 1U);
  EXPECT_EQ(h.sent[2].generation, 2U);
  EXPECT_EQ(h.sent[2].group_hash, h.sent[0].group_hash);
}

TEST_F(Timers, TheGenerationOutlivesTheLog) {
  h.open();
  h.fire(timed_tensor("a"));
  h.at(30s);
  h.resolve(timed_tensor("a"));
  h.at(24h * 60);
  h.fire(timed_tensor("a"));
  h.at(24h * 60 + 30s);
  ASSERT_EQ(h.sent.size(), 3U);
  EXPECT_EQ(h.sent[2].generation, 2U);
  EXPECT_NE(h.sent[2].notification_id, h.sent[0].notification_id);
}

TEST_F(Timers, NothingIsLeftOfAGroupAfterItsRetention) {
  h.open();
  h.fire(timed_tensor("a"));
  h.at(30s);
  h.resolve(timed_tensor("a"));
  h.at(24h * 92);
  EXPECT_THAT(h.changelog, IsEmpty());
  EXPECT_EQ(h.router().next_deadline(), std::nullopt);
}

TEST_F(Timers, AnUrgentMemberPullsTheFlushForwardAndLeavesTheGridAlone) {
  h.tree.immediate_on = "severity=\"critical\"";
  h.open();
  h.fire(timed_tensor("a"));
  h.at(1min);
  core::Labels bad = timed_tensor("b");
  bad.set("severity", "critical");
  h.fire(bad);
  h.at(2min);
  EXPECT_THAT(seconds(), ElementsAre(30, 62));
  h.fire(timed_tensor("c"));
  h.at(6min);
  EXPECT_THAT(seconds(), ElementsAre(30, 62, 330));
}

TEST_F(Timers, TheUrgentLaneKeepsItsLeastGap) {
  h.tree.immediate_on = "{}";
  h.open();
  h.fire(timed_tensor("a"));
  h.at(2s);
  for (const char* name : {"b", "c", "d"}) {
    h.fire(timed_tensor(name));
    h.at(h.now() - kStart + 3s);
  }
  h.at(4min);
  EXPECT_THAT(seconds(), ElementsAre(2, 32));
}

TEST_F(Timers, ActionsOfARuleHearOfANewEpisodeAtOnce) {
  h.integrations.push_back(webhook("stop"));
  h.rule_actions = {{"nan", {"stop"}}};
  h.open();
  core::Labels labels = timed_tensor("a");
  labels.set("run_uid", kRun);
  h.fire(labels);
  h.at(0s);
  EXPECT_THAT(h.said(), ElementsAre("first open stop 1/0"));
  h.job(core::JobPhase::started, 2);
  h.at(1min);
  core::Issue again = h.issue(labels, core::IssueStatus::firing);
  again.run.attempt = 2;
  h.report(again);
  h.at(1min);
  EXPECT_THAT(h.said().back(), "new_issues update stop 1/0");
}

TEST_F(Timers, PastTheLimitIssuesShareTheOverflowGroupOfTheirRoute) {
  h.options.limits.max_groups = 2;
  h.open();
  for (const char* name : {"one", "two", "three", "four"}) h.fire(job(name));
  h.at(1min);
  ASSERT_GE(h.sent.size(), 3U);
  std::size_t told = 0;
  bool overflow = false;
  for (const auto& note : h.sent) {
    told += note.firing_count;
    overflow = overflow || note.group_labels == core::Labels{{"overflow", "true"}};
  }
  EXPECT_TRUE(overflow);
  EXPECT_EQ(told, 5U);  // the four, and router_overflow
  EXPECT_GE(h.router().stats().groups_overflow, 2U);
  const core::Labels alarm{{"rule", "router_overflow"}, {"route", "{}"}};
  EXPECT_TRUE(h.router().find_issue(core::issue_key(alarm))->firing);
}

TEST_F(Timers, AMemberTooManyGoesToTheOverflowGroupAndStaysThere) {
  h.options.limits.max_members_per_group = 2;
  h.open();
  for (const char* name : {"a", "b", "c"}) h.fire(timed_tensor(name));
  h.at(1min);
  h.fire(timed_tensor("c"));
  h.resolve(timed_tensor("a"));
  h.resolve(timed_tensor("b"));
  h.resolve(timed_tensor("c"));
  h.at(24h);
  std::map<std::string, int> open;
  for (const auto& note : h.sent) {
    if (note.kind == core::NotificationKind::open) ++open[note.group_hash];
    if (note.kind == core::NotificationKind::close) --open[note.group_hash];
  }
  for (const auto& [hash, count] : open) EXPECT_EQ(count, 0) << hash;
  const core::Labels alarm{{"rule", "router_overflow"}, {"route", "{}"}};
  EXPECT_FALSE(h.router().find_issue(core::issue_key(alarm))->firing);
}

TEST_F(Timers, AnIssueThatChangesRouteBeforeTheFirstMessageIsToldOnTheNewOneOnly) {
  h.integrations.push_back(webhook("page"));
  RouteConfig page;
  page.matchers = {"severity=critical"};
  page.receivers = {"page"};
  h.tree.routes = {page};
  h.open();
  core::Labels labels = timed_tensor("a");
  labels.set("severity", "warning");
  h.fire(labels);
  h.at(10s);
  labels.set("severity", "critical");
  h.fire(labels);
  h.at(1h);
  EXPECT_THAT(h.said(), ElementsAre("first open page 1/0"));
}

TEST_F(Timers, WhoWasToldBeforeTheRouteChangedHearsOfTheEnd) {
  h.integrations.push_back(webhook("page"));
  RouteConfig page;
  page.matchers = {"severity=critical"};
  page.receivers = {"page"};
  h.tree.routes = {page};
  h.open();
  core::Labels labels = timed_tensor("a");
  labels.set("severity", "warning");
  h.fire(labels);
  h.at(30s);
  labels.set("severity", "critical");
  h.fire(labels);
  h.at(2min);
  h.resolve(labels);
  h.at(1h);
  EXPECT_THAT(h.said(),
              ::testing::UnorderedElementsAre("first open oncall 1/0", "first open page 1/0",
                                              "all_resolved close oncall 0/1 over",
                                              "all_resolved close page 0/1 over"));
}

TEST_F(Timers, ANewEpisodeThatLeadsElsewhereIsNotToldOnTheOldRoute) {
  h.integrations.push_back(webhook("page"));
  RouteConfig page;
  page.matchers = {"severity=critical"};
  page.receivers = {"page"};
  h.tree.routes = {page};
  h.open();
  core::Labels labels = timed_tensor("a");
  labels.set("severity", "critical");
  h.fire(labels);
  h.at(30s);
  h.resolve(labels);
  h.at(40s);
  labels.set("severity", "warning");
  h.fire(labels);
  h.at(1h);
  EXPECT_THAT(h.said(), ::testing::UnorderedElementsAre("first open page 1/0",
                                                        "all_resolved close page 0/1 over",
                                                        "first open oncall 1/0"));
}

}  // namespace
}  // namespace tocsin::routing
