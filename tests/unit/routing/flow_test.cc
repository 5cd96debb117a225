// What may happen when: the start, a catch-up, and how much one call does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/routing/harness.h"

namespace tocsin::routing {
namespace {

using core::IssueStatus;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

core::Labels tensor(int number) {
  return {{"rule", "nan"}, {"job", "j"}, {"tensor", std::to_string(number)}};
}
core::Labels job(int number) { return {{"rule", "nan"}, {"job", std::to_string(number)}}; }

class Flow : public ::testing::Test {
 protected:
  /// As the stage does: one turn of reading, then a tick.
  void turn(core::Duration since, bool behind) {
    h.stop_until(since);
    h.router().set_behind(behind, h.now());
    while (h.router().tick(h.now())) h.commit();
    h.commit();
  }
  /// A report that has lain in the backlog.
  void old(const core::Labels& labels, core::Duration age = 1h) {
    core::Issue issue = h.issue(labels, IssueStatus::firing);
    issue.starts_at = issue.time = h.now() - age;
    h.report(issue);
  }
  Harness h;
};

TEST_F(Flow, AfterAPauseFiftyIssuesMakeOneMessage) {
  for (const auto wait : {core::Duration(0s), core::Duration(30s)}) {
    h.changelog.clear();
    h.tree.group_wait = wait;
    h.stop_until(0s);
    h.open();
    for (int i = 0; i < 50; ++i) {
      turn(i * 100ms, true);
      old(tensor(i));
    }
    EXPECT_THAT(h.said(), IsEmpty());
    turn(6s, false);
    EXPECT_THAT(h.said(), ElementsAre("first open oncall 50/0"));
  }
}

TEST_F(Flow, NothingIsToldAtTheStartBeforeTheInputHasBeenRead) {
  h.open();
  h.fire(tensor(1));
  h.at(30s);
  h.said();
  h.stop_until(5h);
  h.open();
  turn(5h, true);
  EXPECT_THAT(h.said(), IsEmpty()) << "not even the repeat that is overdue";
  h.tree.group_wait = 0s;
  h.fire(job(7));
  turn(5h + 1s, true);
  EXPECT_THAT(h.said(), IsEmpty()) << "not even what is fresh";
  h.resolve(tensor(1));
  turn(5h + 2s, false);
  EXPECT_THAT(h.said(), ElementsAre("all_resolved close oncall 0/1 over"))
      << "what stood in the backlog decides, not what was known before";
}

TEST_F(Flow, TheStartWaitsNoLongerThanTheHold) {
  h.open();
  turn(0s, true);
  old(tensor(1));
  turn(29s, true);
  EXPECT_THAT(h.said(), IsEmpty());
  EXPECT_EQ(h.router().next_deadline(), kStart + 30s);
  turn(30s, true);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
}

TEST_F(Flow, AFreshIssueIsToldAlthoughAnotherPartitionIsBehind) {
  h.tree.group_wait = 0s;
  h.open();
  turn(0s, false);
  turn(1s, true);
  old(job(1));
  h.fire(job(2));
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  EXPECT_EQ(h.sent.back().group_labels.get("job"), "2");
  turn(2s, false);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
}

TEST_F(Flow, RepeatsAndUpdatesWaitForTheBacklogAndAreToldOncePerHold) {
  h.tree.group_interval = 5s;
  h.tree.repeat_interval = std::vector<RepeatStep>{{std::nullopt, 5s}};
  h.open();
  turn(0s, false);
  h.fire(tensor(0));
  turn(30s, false);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  for (int second = 31; second < 100; ++second) {
    turn(second * 1s, true);
    old(tensor(second));
  }
  const auto said = h.said();
  ASSERT_EQ(said.size(), 2U) << "at 61 and 91 s, not every 5 s";
  EXPECT_EQ(said[0], "new_issues update oncall 31/0");
  EXPECT_EQ(said[1], "new_issues update oncall 61/0");
  turn(100s, false);
  EXPECT_THAT(h.said(), ElementsAre("new_issues update oncall 70/0"));
}

TEST_F(Flow, NothingExpiresWhoseRefreshMayStandInTheBacklog) {
  h.open();
  turn(0s, false);
  core::Issue issue = h.issue(tensor(1), IssueStatus::firing);
  issue.explicit_expiry = false;
  issue.sequence = 0;
  h.report(issue);
  turn(30s, false);
  turn(5min + 1s, true);
  EXPECT_TRUE(h.router().find_issue(core::issue_key(tensor(1)))->firing);
  issue.event_id = "refresh";
  issue.time = kStart + 4min;
  h.report(issue);
  turn(5min + 2s, false);
  EXPECT_TRUE(h.router().find_issue(core::issue_key(tensor(1)))->firing);
  turn(11min, false);
  EXPECT_FALSE(h.router().find_issue(core::issue_key(tensor(1)))->firing);
}

TEST_F(Flow, OneTickGivesOutItsBudgetAndSaysThatMoreIsDue) {
  h.options.budget.notifications = 10;
  h.open();
  for (int i = 0; i < 25; ++i) h.fire(job(i));
  h.stop_until(30s);
  std::vector<std::size_t> counts;
  bool more = true;
  while (more) {
    more = h.router().tick(h.now());
    const std::size_t before = h.sent.size();
    EXPECT_EQ(*h.router().next_deadline() <= h.now(), more);
    h.commit();
    counts.push_back(h.sent.size() - before);
  }
  EXPECT_THAT(counts, ElementsAre(10, 10, 5));
  EXPECT_GT(*h.router().next_deadline(), h.now());
}

TEST_F(Flow, BytesAndMembersAreBudgetsToo) {
  h.open();
  for (int i = 0; i < 8; ++i) {
    core::Issue issue = h.issue(job(i), IssueStatus::firing);
    issue.summary = std::string(10'000, 's');
    h.report(issue);
  }
  h.options.budget.bytes = 25'000;
  h.crash();
  h.stop_until(30s);
  EXPECT_TRUE(h.router().tick(h.now()));
  h.commit();
  EXPECT_EQ(h.sent.size(), 3U);
  h.options.budget = {};
  h.options.budget.members = 2;
  h.crash();
  EXPECT_TRUE(h.router().tick(h.now()));
  h.commit();
  EXPECT_EQ(h.sent.size(), 5U);
}

TEST_F(Flow, ASlowRoundMakesTheNextOneNoLarger) {
  h.tree.group_interval = 5s;
  h.options.budget.notifications = 10;
  h.open();
  turn(0s, false);
  for (int i = 0; i < 100; ++i) h.fire(job(i));
  std::uint64_t flushes = 0;
  // Every call takes seven seconds: more than the interval.
  for (int call = 0; call < 30; ++call) {
    h.stop_until(30s + call * 7s);
    h.router().tick(h.now());
    h.commit();
    const std::uint64_t now = h.router().stats().flushes;
    EXPECT_LE(now - flushes, 110U) << "a missed tick is not made up for";
    flushes = now;
  }
  EXPECT_EQ(h.said().size(), 100U) << "each told once";
}

TEST_F(Flow, ABacklogIsReadBeforeAnythingIsToldTwice) {
  h.tree.group_interval = 5s;
  h.open();
  // 40 groups, their issues arrive over 25 s of reading.
  for (int i = 0; i < 1000; ++i) {
    if (i % 40 == 0) turn(i / 40 * 1s, true);
    core::Labels labels = job(i % 40);
    labels.set("tensor", std::to_string(i));
    old(labels);
  }
  turn(26s, false);
  const auto said = h.said();
  EXPECT_EQ(said.size(), 40U);
  for (const auto& one : said) EXPECT_EQ(one, "first open oncall 25/0");
}

}  // namespace
}  // namespace tocsin::routing
