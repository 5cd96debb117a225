// The life of an issue: episodes, merging, expiry, jobs, duplicates and stale reports.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/routing/issue_life_fixture.h"

namespace tocsin::routing {
namespace {

using core::IssueStatus;
using core::JobPhase;
using core::Resolution;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

using IssueLife = IssueLifeTest;

TEST_F(IssueLife, AFiringAfterAResolveIsTheNextEpisode) {
  h.fire(kLiving);
  h.at(1s);
  h.resolve(kLiving);
  h.at(2s);
  h.fire(kLiving);
  EXPECT_THAT(history(), ElementsAre("1 firing", "1 resolved recovered", "2 firing"));
  EXPECT_EQ(view(kLiving).episodes, 2U);
  EXPECT_TRUE(view(kLiving).firing);
}

// The engine's state was lost (`state_incomplete`), and with it the count of its reports.
TEST_F(IssueLife, WhoCountsFromTheBeginningAgainIsHeard) {
  core::Issue fired = h.issue(kLiving, IssueStatus::firing);
  fired.sequence = 41;
  h.report(fired);
  h.at(1s);
  core::Issue resolved = h.issue(kLiving, IssueStatus::resolved);
  resolved.sequence = 42;
  h.report(resolved);

  h.at(30s);
  core::Issue late = h.issue(kLiving, IssueStatus::firing);
  late.sequence = 40;
  late.time = late.starts_at = kStart - 1s;
  h.report(late);
  EXPECT_FALSE(view(kLiving).firing);  // read late, and not new

  core::Issue anew = h.issue(kLiving, IssueStatus::firing);
  anew.sequence = 1;
  h.report(anew);
  EXPECT_TRUE(view(kLiving).firing);
  h.at(31s);
  core::Issue over = h.issue(kLiving, IssueStatus::resolved);
  over.sequence = 2;
  h.report(over);
  EXPECT_THAT(history(),
              ElementsAre("1 firing", "1 resolved recovered", "2 firing", "2 resolved recovered"));
}

// It began on a clock that was ahead, and the router was started again on one that is right.
TEST_F(IssueLife, AnEndEndsWhatBeganOnAClockThatWasAhead) {
  core::Issue fired = h.issue(kLiving, IssueStatus::firing);
  fired.sequence = 8;
  fired.time = fired.starts_at = kStart + 80s;
  h.report(fired);
  h.at(4s);
  fired.sequence = 9;
  fired.event_id = "iss_again";
  fired.time = kStart + 4s;
  h.report(fired);
  h.at(5s);
  core::Issue over = h.issue(kLiving, IssueStatus::resolved);
  over.sequence = 11;
  over.time = kStart + 5s;
  over.starts_at = kStart + 2s;
  over.ends_at = kStart + 5s;
  h.report(over);
  EXPECT_THAT(history(), ElementsAre("1 firing", "1 resolved recovered"));
  EXPECT_LE(view(kLiving).issue.starts_at, *view(kLiving).issue.ends_at);
}

TEST_F(IssueLife, SeverityIsNoPartOfWhatTheIssueIs) {
  h.fire(kLiving);
  core::Labels worse = kLiving;
  worse.set("severity", "critical");
  h.fire(worse);
  EXPECT_THAT(history(), ElementsAre("1 firing"));
  EXPECT_EQ(view(kLiving).issue.severity, core::Severity::critical);
}

TEST_F(IssueLife, ReportsOfOneEpisodeMergeAndTheFirstOneKeepsItsWords) {
  core::Issue first = h.issue(kLiving, IssueStatus::firing);
  first.summary = "first";
  h.report(first);
  h.at(5s);
  core::Issue second = h.issue(kLiving, IssueStatus::firing);
  second.summary = "second";
  second.starts_at = kStart - 10s;
  h.report(second);
  EXPECT_EQ(view(kLiving).issue.summary, "first");
  EXPECT_EQ(view(kLiving).issue.starts_at, kStart - 10s);
  h.at(6s);
  core::Issue late = h.issue(kLiving, IssueStatus::firing);
  late.source = "/elsewhere";
  late.summary = "measured before the second";
  late.time = kStart + 1s;
  h.report(late);
  EXPECT_EQ(view(kLiving).issue.summary, "first");
  EXPECT_EQ(view(kLiving).issue.starts_at, kStart - 10s);
}

TEST_F(IssueLife, TheLatestOfTwoResolvesCounts) {
  h.fire(kLiving);
  h.at(10s);
  core::Issue one = h.issue(kLiving, IssueStatus::resolved);
  one.ends_at = kStart + 4s;
  one.summary = "early";
  h.report(one);
  core::Issue two = h.issue(kLiving, IssueStatus::resolved);
  two.starts_at = kStart;
  two.ends_at = kStart + 7s;
  two.summary = "late";
  h.report(two);
  EXPECT_EQ(*view(kLiving).issue.ends_at, kStart + 7s);
  EXPECT_EQ(view(kLiving).issue.ending->summary, "late");
  core::Issue three = h.issue(kLiving, IssueStatus::resolved);
  three.starts_at = kStart;
  three.ends_at = kStart + 5s;
  three.summary = "in between";
  h.report(three);
  EXPECT_EQ(*view(kLiving).issue.ends_at, kStart + 7s);
  EXPECT_EQ(view(kLiving).issue.ending->summary, "late");
  EXPECT_THAT(history(), ElementsAre("1 firing", "1 resolved recovered"));
}

TEST_F(IssueLife, EverNewSourcesDoNotMakeTheStateGrow) {
  for (int i = 0; i < 2000; ++i) {
    core::Issue issue = h.issue(kLiving, IssueStatus::firing);
    issue.source = "/made/up/" + std::to_string(i);
    h.report(issue);
  }
  EXPECT_LT(h.changelog.at("issue/" + core::issue_key(kLiving)).size(), 5000U);
  h.crash();
  EXPECT_TRUE(view(kLiving).firing);
}

TEST_F(IssueLife, AReportThatTouchesTheEndedEpisodeContinuesIt) {
  h.fire(kLiving);
  h.at(10s);
  h.resolve(kLiving);
  core::Issue again = h.issue(kLiving, IssueStatus::firing);
  again.starts_at = kStart + 3s;
  h.report(again);
  EXPECT_THAT(history(), ElementsAre("1 firing", "1 resolved recovered", "1 firing"));
  EXPECT_EQ(view(kLiving).issue.starts_at, kStart);
}

TEST_F(IssueLife, ADuplicateEventIsDropped) {
  const core::Issue issue = h.issue(kLiving, IssueStatus::firing);
  h.report(issue);
  h.report(issue);
  h.at(1h);
  h.report(issue);
  EXPECT_EQ(h.router().stats().duplicates, 2U);
  EXPECT_EQ(h.router().stats().events, 3U);
}

TEST_F(IssueLife, TheSameIdOfAnotherSourceIsNoDuplicate) {
  core::Issue issue = h.issue(kLiving, IssueStatus::firing);
  h.report(issue);
  issue.source = "/other";
  h.report(issue);
  EXPECT_EQ(h.router().stats().duplicates, 0U);
}

TEST_F(IssueLife, DuplicatesAreRememberedForTheWindowOnly) {
  const core::Issue issue = h.issue(kLiving, IssueStatus::firing);
  h.report(issue);
  const auto seen = [&] {
    std::size_t count = 0;
    for (const auto& [key, value] : h.changelog) count += key.rfind("seen/", 0) == 0 ? 1 : 0;
    return count;
  };
  EXPECT_EQ(seen(), 1U);
  h.at(25h);
  h.commit();
  EXPECT_EQ(seen(), 0U);
}

TEST_F(IssueLife, TheMemoryForDuplicatesIsBounded) {
  h.options.limits.dedup_max = 3;
  h.open();
  for (int i = 0; i < 10; ++i) {
    core::Labels labels = kLiving;
    labels.set("tensor", std::to_string(i));
    h.fire(labels);
  }
  std::size_t seen = 0;
  for (const auto& [key, value] : h.changelog) seen += key.rfind("seen/", 0) == 0 ? 1 : 0;
  EXPECT_EQ(seen, 3U);
}

TEST_F(IssueLife, AStaleReportChangesNothing) {
  const core::Issue old = h.issue(kLiving, IssueStatus::firing);
  h.fire(kLiving);
  h.at(1s);
  h.resolve(kLiving);
  h.report(old);
  EXPECT_EQ(h.router().stats().stale, 1U);
  EXPECT_FALSE(view(kLiving).firing);
}

TEST_F(IssueLife, AnOldFiringWithoutSequenceDoesNotReopen) {
  core::Issue old = foreign();
  h.fire(kLiving);
  h.at(10s);
  h.resolve(kLiving);
  old.time = kStart + 5s;
  h.report(old);
  EXPECT_FALSE(view(kLiving).firing);
  EXPECT_EQ(h.router().stats().stale, 1U);
}

TEST_F(IssueLife, AResolveOfAnEarlierEpisodeDoesNotEndThisOne) {
  h.at(1min);
  h.fire(kLiving);
  core::Issue old = h.issue(kLiving, IssueStatus::resolved);
  old.starts_at = kStart;
  old.ends_at = kStart + 10s;
  old.sequence = 0;  // times are all there is to order it by
  h.report(old);
  EXPECT_TRUE(view(kLiving).firing);
}

TEST_F(IssueLife, AResolveOfNothingIsCounted) {
  h.resolve(kLiving);
  h.at(1h);
  EXPECT_EQ(h.router().stats().orphan_resolves, 1U);
  EXPECT_THAT(h.sent, IsEmpty());
  h.fire(kLiving);
  EXPECT_EQ(view(kLiving).episodes, 1U);
}

TEST_F(IssueLife, AProducerWithoutResolvesTimesOut) {
  h.report(foreign());
  h.at(4min);
  refresh();
  h.at(8min);
  EXPECT_TRUE(view(kLiving).firing);
  h.at(10min);
  EXPECT_FALSE(view(kLiving).firing);
  EXPECT_EQ(*view(kLiving).issue.ends_at, kStart + 9min);
  EXPECT_THAT(history(), ElementsAre("1 firing", "1 resolved expired"));
}

TEST_F(IssueLife, AnIssueOfOurEngineNeverTimesOut) {
  h.fire(kLiving);
  h.at(24h * 30);
  EXPECT_TRUE(view(kLiving).firing);
}

TEST_F(IssueLife, ATimeoutNeverShortensAnEndThatWasNamed) {
  core::Issue named = foreign();
  named.ends_at = kStart + 1h;
  h.report(named);
  h.at(10s);
  refresh();
  h.at(59min);
  EXPECT_TRUE(view(kLiving).firing);
  h.at(1h);
  EXPECT_FALSE(view(kLiving).firing);
}

TEST_F(IssueLife, ExpiryHappensAtItsTimeAlsoWhileTheRouterWasDown) {
  h.report(foreign());
  h.stop_until(1h);
  h.open();
  h.at(1h);
  EXPECT_FALSE(view(kLiving).firing);
  EXPECT_EQ(*view(kLiving).issue.ends_at, kStart + 5min);
  EXPECT_THAT(h.sent, IsEmpty());
}

TEST_F(IssueLife, ABeginFarAheadIsClampedToTheArrival) {
  core::Issue issue = h.issue(kLiving, IssueStatus::firing);
  issue.starts_at = kStart + 1h;
  h.report(issue);
  EXPECT_EQ(view(kLiving).issue.starts_at, kStart);
  EXPECT_EQ(h.router().stats().clamped, 1U);
}

TEST_F(IssueLife, AnEndOfAProducerWhoseClockIsAheadIsAnEnd) {
  core::Issue issue = h.issue(kLiving, IssueStatus::firing);
  issue.starts_at = issue.time = kStart + 2s;
  h.report(issue);
  issue = h.issue(kLiving, IssueStatus::resolved);
  issue.starts_at = kStart + 2s;
  issue.time = kStart + 3s;
  issue.ends_at = kStart + 3s;
  h.report(issue);  // here it is kStart
  EXPECT_FALSE(view(kLiving).firing);
  EXPECT_EQ(*view(kLiving).issue.ends_at, kStart + 2s);
}

TEST_F(IssueLife, MissingTimesAreFilledIn) {
  core::Issue issue = h.issue(kLiving, IssueStatus::firing);
  issue.starts_at = {};
  issue.time = kStart - 3s;
  h.report(issue);
  EXPECT_EQ(view(kLiving).issue.starts_at, kStart - 3s);
  issue = h.issue(kRunA, IssueStatus::firing);
  issue.starts_at = issue.time = {};
  h.report(issue);
  EXPECT_EQ(view(kRunA).issue.starts_at, kStart);
}

TEST_F(IssueLife, AnIssueWithoutLabelsIsRejected) {
  h.report(h.issue({}, IssueStatus::firing));
  EXPECT_EQ(h.router().stats().rejected, 1U);
  EXPECT_EQ(h.router().stats().issues, 0U);
}

TEST_F(IssueLife, ResolvedIssuesAreForgottenAfterTheRetention) {
  h.fire(kLiving);
  h.at(30s);
  h.resolve(kLiving);
  h.at(23h);
  EXPECT_EQ(h.router().stats().issues, 1U);
  h.at(25h);
  EXPECT_EQ(h.router().stats().issues, 0U);
  EXPECT_EQ(h.changelog.count("issue/" + core::issue_key(kLiving)), 0U);
}

}  // namespace
}  // namespace tocsin::routing
