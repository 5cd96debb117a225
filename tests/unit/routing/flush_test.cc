// The flush table, and the weak points of Alertmanager that it has to beat (W1–W4, W10, W12).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/routing/harness.h"

namespace tocsin::routing {
namespace {

using core::NotificationKind;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const core::Labels kA{{"rule", "nan"}, {"job", "j"}, {"tensor", "a"}, {"severity", "error"}};
const core::Labels kB{{"rule", "nan"}, {"job", "j"}, {"tensor", "b"}, {"severity", "error"}};

core::Labels with(core::Labels labels, std::string_view name, std::string_view value) {
  labels.set(name, value);
  return labels;
}

std::vector<RepeatStep> every(core::Duration interval) { return {{std::nullopt, interval}}; }

class Flush : public ::testing::Test {
 protected:
  Harness h;
};

TEST_F(Flush, OpensUpdatesAndClosesOneIncident) {
  h.open();
  h.fire(kA);
  h.at(29s);
  EXPECT_THAT(h.said(), IsEmpty());
  h.at(30s);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  h.at(60s);
  h.fire(kB);
  h.at(30s + 5min);
  EXPECT_THAT(h.said(), ElementsAre("new_issues update oncall 2/0"));
  h.resolve(kA);
  h.at(30s + 10min);
  EXPECT_THAT(h.said(), ElementsAre("some_resolved update oncall 1/1"));
  h.resolve(kB);
  h.at(30s + 15min);
  EXPECT_THAT(h.said(), ElementsAre("all_resolved close oncall 0/1 over"));
  EXPECT_EQ(h.router().stats().groups, 0U);
}

TEST_F(Flush, SaysNothingOfAnIssueThatEndedBeforeTheFirstFlush) {
  h.open();
  h.fire(kA);
  h.at(10s);
  h.resolve(kA);
  h.at(1h);
  EXPECT_THAT(h.said(), IsEmpty());
  EXPECT_EQ(h.decisions.size(), 1U);
  EXPECT_EQ(h.decisions.front().reason, "none");
}

TEST_F(Flush, TellsOfAnIssueWhoseJobEndedBeforeTheFirstFlush) {
  h.open();
  h.fire(with(kA, "run_uid", kRun));
  h.at(1s);
  h.job(core::JobPhase::ended, 1);
  h.at(30s);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  h.at(30s + 5min);
  EXPECT_THAT(h.said(), ElementsAre("all_resolved close oncall 0/1 over"));
  EXPECT_EQ(h.router().stats().groups, 0U);
}

TEST_F(Flush, AJobsEndThatNobodyWantsToHearOfLeavesTheGroup) {
  h.integrations.front().when = "job=\"other\"";
  h.open();
  h.fire(with(kA, "run_uid", kRun));
  h.job(core::JobPhase::ended, 1);
  h.at(30s);
  EXPECT_THAT(h.said(), IsEmpty());
  EXPECT_EQ(h.router().stats().groups, 0U);
}

TEST_F(Flush, ANotificationNamesItsGroupItsIssuesAndItsLimits) {
  h.integrations.front().max_age = 1h;
  h.open();
  h.fire(kA);
  h.at(30s);
  ASSERT_EQ(h.sent.size(), 1U);
  const core::Notification& note = h.sent.front();
  EXPECT_EQ(note.notification_id.substr(0, 4), "ntf_");
  EXPECT_EQ(note.notification_id.size(), 30U);
  EXPECT_EQ(note.receiver, "oncall");
  EXPECT_EQ(note.type, "webhook");
  EXPECT_EQ(note.route_id, "{}");
  EXPECT_EQ(note.group_key, "{}:{job=\"j\", rule=\"nan\"}");
  EXPECT_EQ(note.group_hash.size(), 64U);
  EXPECT_EQ(note.generation, 1U);
  EXPECT_EQ(note.group_labels, (core::Labels{{"rule", "nan"}, {"job", "j"}}));
  EXPECT_EQ(note.common_labels, kA);
  EXPECT_EQ(note.issues.at(0).issue_key, core::issue_key(kA));
  EXPECT_EQ(note.issues.at(0).issue.ends_at, std::nullopt);
  EXPECT_EQ(note.decided_at, kStart + 30s);
  EXPECT_EQ(note.expires_at, kStart + 30s + 1h);
  EXPECT_EQ(note.config_version, "v1");
  EXPECT_TRUE(note.firing);
}

TEST_F(Flush, TheMostSevereComesFirstAndTheRestIsCounted) {
  h.integrations.front().max_alerts = 2;
  h.open();
  h.fire(with(kA, "tensor", "old"));
  h.at(1s);
  h.fire(with(kA, "tensor", "young"));
  h.fire(with(with(kA, "tensor", "worst"), "severity", "critical"));
  h.at(30s);
  const core::Notification& note = h.sent.at(0);
  ASSERT_EQ(note.issues.size(), 2U);
  EXPECT_EQ(note.issues[0].issue.labels.get("tensor"), "worst");
  EXPECT_EQ(note.issues[1].issue.labels.get("tensor"), "old");
  EXPECT_EQ(note.truncated, 1U);
  EXPECT_EQ(note.firing_count, 3U);
  EXPECT_EQ(note.common_labels, (core::Labels{{"rule", "nan"}, {"job", "j"}}));
}

TEST_F(Flush, ACloseMayWaitAWeekForItsDelivery) {
  h.integrations.front().max_age = 1h;
  h.open();
  h.fire(kA);
  h.at(30s);
  h.resolve(kA);
  h.at(30s + 5min);
  EXPECT_EQ(h.sent.at(1).expires_at, h.sent.at(1).decided_at + 24h * 7);
}

TEST_F(Flush, ARaisedSeverityIsNewsAndALoweredOneIsNot) {
  h.open();
  h.fire(with(kA, "severity", "warning"));
  h.at(30s);
  h.fire(with(kA, "severity", "critical"));
  h.at(30s + 5min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0", "severity_raised update oncall 1/0"));
  h.fire(with(kA, "severity", "warning"));
  h.at(30s + 10min);
  EXPECT_THAT(h.said(), IsEmpty());
}

TEST_F(Flush, AnIntegrationHearsOnlyOfWhatItsFilterLetsThrough) {
  h.integrations.front().when = "tensor=\"b\"";
  h.open();
  h.fire(kA);
  h.at(30s);
  EXPECT_THAT(h.said(), IsEmpty());
  h.fire(kB);
  h.at(30s + 5min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  EXPECT_EQ(h.sent.at(0).issues.at(0).issue.labels, kB);
}

TEST_F(Flush, IntegrationsOfOneGroupKeepTheirOwnBooks) {
  h.integrations = {webhook("one"), webhook("two")};
  h.integrations[1].when = "tensor=\"b\"";
  h.tree.receivers = {"one", "two"};
  h.open();
  h.fire(kA);
  h.at(30s);
  h.fire(kB);
  h.at(30s + 5min);
  EXPECT_THAT(h.said(),
              ElementsAre("first open one 1/0", "new_issues update one 2/0", "first open two 1/0"));
}

TEST_F(Flush, ADisabledIntegrationIsToldNothing) {
  h.integrations.front().enabled = false;
  h.open();
  h.fire(kA);
  h.at(1h);
  EXPECT_THAT(h.said(), IsEmpty());
}

TEST_F(Flush, AShadowIssueIsRecordedAndNeverTold) {
  h.open();
  core::Issue issue = h.issue(kA, core::IssueStatus::firing);
  issue.shadow = true;
  h.report(issue);
  h.at(1h);
  EXPECT_THAT(h.said(), IsEmpty());
  EXPECT_EQ(h.router().stats().firing, 1U);
}

TEST_F(Flush, EveryDecisionHasAnIdOfItsOwn) {
  h.integrations = {webhook("one"), webhook("two")};
  h.tree.receivers = {"one", "two"};
  h.open();
  for (int round = 0; round < 3; ++round) {
    h.fire(kA);
    h.at(h.now() - kStart + 10min);
    h.resolve(kA);
    h.at(h.now() - kStart + 10min);
  }
  std::set<std::string> ids;
  for (const auto& note : h.sent) ids.insert(note.notification_id);
  EXPECT_EQ(h.sent.size(), 12U);
  EXPECT_EQ(ids.size(), h.sent.size());
}

// W1: announced, silenced, resolves meanwhile. The incident must be closed.
TEST_F(Flush, W1AResolveUnderSilenceIsStillOwed) {
  h.open();
  h.fire(kA);
  h.at(30s);
  h.silenced = {{"tensor", "a"}};
  h.resolve(kA);
  h.at(30s + 5min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0", "all_resolved close oncall 0/1 over"));
}

TEST_F(Flush, W1ADeferredResolveIsPaidOnceWhenTheSilenceEnds) {
  h.integrations.front().stateful = false;
  h.open();
  h.fire(kA);
  h.at(30s);
  h.silenced = {{"tensor", "a"}};
  h.resolve(kA);
  h.at(1h);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  EXPECT_EQ(h.router().stats().owed, 1U);
  h.silenced.clear();
  h.at(2h);
  EXPECT_THAT(h.said(), ElementsAre("all_resolved close oncall 0/1 over"));
  EXPECT_EQ(h.router().stats().owed, 0U);
  EXPECT_EQ(h.router().stats().groups, 0U);
}

TEST_F(Flush, W1ADeferredResolveIsDroppedAndCountedAfterAWeek) {
  h.integrations.front().stateful = false;
  h.options.limits.owed_max_age = 1h;
  h.open();
  h.fire(kA);
  h.at(30s);
  h.silenced = {{"tensor", "a"}};
  h.resolve(kA);
  h.at(2h);
  h.silenced.clear();
  h.at(4h);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  EXPECT_EQ(h.router().stats().owed_dropped, 1U);
}

// W2: the same issue fires again after W1. It must be announced at once, not after repeat_interval.
TEST_F(Flush, W2TheNextEpisodeAfterAMutedResolveIsAnnounced) {
  for (const bool stateful : {true, false}) {
    Harness one;
    one.integrations.front().stateful = stateful;
    one.open();
    one.fire(kA);
    one.at(30s);
    one.silenced = {{"tensor", "a"}};
    one.resolve(kA);
    one.at(10min);
    one.silenced.clear();
    one.said();
    one.fire(kA);
    one.at(16min);
    const auto said = one.said();
    ASSERT_FALSE(said.empty());
    EXPECT_EQ(one.sent.back().issues.at(0).episode, 2U);
    EXPECT_TRUE(one.sent.back().kind == NotificationKind::open ||
                one.sent.back().kind == NotificationKind::update);
  }
}

TEST_F(Flush, W2ANewEpisodeBetweenTwoFlushesIsNews) {
  h.open();
  h.fire(kA);
  h.at(30s);
  h.resolve(kA);
  h.at(40s);
  h.fire(kA);
  h.at(30s + 5min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0", "new_issues update oncall 1/0"));
  EXPECT_EQ(h.sent.back().issues.at(0).episode, 2U);
}

TEST_F(Flush, ANewEpisodeThatIsMutedClosesTheOldOne) {
  h.open();
  h.fire(kA);
  h.at(30s);
  h.resolve(kA);
  h.at(40s);
  h.fire(kA);
  h.silenced = {{"tensor", "a"}};
  h.at(30s + 5min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0", "all_resolved close oncall 0/1 over"));
  EXPECT_EQ(h.sent.back().issues.at(0).episode, 1U);
  EXPECT_EQ(h.sent.back().issues.at(0).issue.status, core::IssueStatus::resolved);
  h.silenced.clear();
  h.at(30s + 10min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
}

// W3: one member silenced but firing, another resolves. The incident must stay open.
TEST_F(Flush, W3AnIncidentStaysOpenWhileASilencedMemberFires) {
  h.open();
  h.fire(kA);
  h.fire(kB);
  h.at(30s);
  h.silenced = {{"tensor", "a"}};
  h.resolve(kB);
  h.at(30s + 5min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 2/0", "some_resolved update oncall 0/1"));
  const core::Notification& note = h.sent.back();
  EXPECT_TRUE(note.firing);
  ASSERT_EQ(note.suppressed.size(), 1U);
  EXPECT_EQ(note.suppressed[0].issue.labels, kA);
  ASSERT_EQ(note.issues.size(), 1U);
  EXPECT_EQ(note.issues[0].issue.labels, kB);
}

// W4: without send_resolved, a member that resolves and fires again must be announced again.
TEST_F(Flush, W4WithoutResolvesASecondEpisodeIsStillAnnounced) {
  h.integrations.front().send_resolved = false;
  h.open();
  h.fire(kA);
  h.fire(kB);
  h.at(30s);
  h.resolve(kA);
  h.at(30s + 5min);
  h.fire(kA);
  h.at(30s + 10min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 2/0", "new_issues update oncall 2/0"));
}

TEST_F(Flush, WithoutResolvesACloseIsOnlyWrittenDown) {
  h.integrations.front().send_resolved = false;
  h.open();
  h.fire(kA);
  h.at(30s);
  h.resolve(kA);
  h.at(30s + 5min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  EXPECT_EQ(h.decisions.back().reason, "all_resolved");
  h.fire(kA);
  h.at(1h);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
}

// W10: a repeat interval that is a multiple of group_interval repeats exactly on it, also when
// equal.
TEST_F(Flush, W10RepeatsFallExactlyOnTheirMultiples) {
  using Case = std::pair<std::chrono::minutes, int>;
  for (const auto& [repeat, count] : {Case{5min, 12}, Case{20min, 3}, Case{1h, 1}}) {
    Harness one;
    one.tree.repeat_interval = every(repeat);
    one.open();
    one.fire(kA);
    one.at(30s + 1h);
    ASSERT_EQ(one.sent.size(), static_cast<std::size_t>(count) + 1);
    for (std::size_t i = 0; i < one.sent.size(); ++i) {
      EXPECT_EQ(one.sent[i].decided_at, kStart + 30s + static_cast<int>(i) * repeat);
      EXPECT_EQ(one.sent[i].reason, i == 0 ? "first" : "repeat");
    }
  }
}

TEST_F(Flush, W10LateTicksDoNotMoveTheGrid) {
  h.tree.repeat_interval = every(10min);
  h.open();
  h.fire(kA);
  std::vector<core::Duration> repeats;
  for (int i = 0; i < 40; ++i) {
    // The owner of the router is always up to 900 ms late.
    const core::WallTime due = *h.router().next_deadline();
    h.router().tick(due + (i * 137 % 900) * 1ms);
    for (const auto& note : h.router().take().notifications) {
      if (note.reason == "repeat") repeats.push_back(due - kStart);
    }
  }
  ASSERT_GE(repeats.size(), 10U);
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    EXPECT_EQ(repeats[i], 30s + 10min * static_cast<int>(i + 1));
  }
}

TEST_F(Flush, ALadderRepeatsMoreSlowlyWithAge) {
  h.tree.group_interval = 30min;
  h.tree.repeat_interval = std::vector<RepeatStep>{{6h, 1h}, {24h, 6h}, {std::nullopt, 24h}};
  h.open();
  h.fire(kA);
  h.at(24h * 4);
  std::vector<std::int64_t> hours;
  for (const auto& note : h.sent) {
    hours.push_back((note.decided_at - kStart) / 1h);
  }
  EXPECT_THAT(hours, ElementsAre(0, 1, 2, 3, 4, 5, 11, 17, 23, 47, 71, 95));
}

TEST_F(Flush, OnlySuppressedMembersAreNotRepeated) {
  h.open();
  h.fire(kA);
  h.at(30s);
  h.silenced = {{"tensor", "a"}};
  h.at(24h);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  EXPECT_GT(h.router().stats().suppressed, 0U);
}

// W12: two sibling routes with the same matchers and receiver are independent.
TEST_F(Flush, W12SiblingsWithTheSameMatchersAndReceiverAreBothHeard) {
  RouteConfig twin;
  twin.matchers = {"rule=\"nan\""};
  twin.proceed = true;
  h.tree.routes = {twin, twin};
  h.open();
  h.fire(kA);
  h.at(30s);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0", "first open oncall 1/0"));
  EXPECT_NE(h.sent[0].route_id, h.sent[1].route_id);
  EXPECT_NE(h.sent[0].notification_id, h.sent[1].notification_id);
  EXPECT_EQ(h.sent[0].group_key, h.sent[1].group_key);
}

TEST_F(Flush, AToldEpisodeKeepsItsOwnTimesWhenALaterOneFollows) {
  h.open();
  h.fire(kA);
  h.at(60s);
  core::Issue end = h.issue(kA, core::IssueStatus::resolved);
  end.summary = "back below the limit";
  h.report(end);
  h.silenced = {{"tensor", "a"}};
  h.at(100s);
  h.fire(kA);
  h.crash();  // the state keeps them too
  h.at(30s + 5min);
  ASSERT_THAT(h.said(), ElementsAre("first open oncall 1/0", "all_resolved close oncall 0/1 over"));
  ASSERT_EQ(h.sent[1].issues.size(), 1U);
  const core::NotifiedIssue& told = h.sent[1].issues[0];
  EXPECT_EQ(told.episode, 1U);
  EXPECT_EQ(told.issue.status, core::IssueStatus::resolved);
  EXPECT_EQ(told.issue.resolution, core::Resolution::recovered);
  EXPECT_EQ(told.issue.starts_at, kStart);
  EXPECT_EQ(told.issue.ends_at, kStart + 60s);
  EXPECT_EQ(told.issue.summary, "back below the limit");
  const std::string record = h.changelog.at("issue/" + core::issue_key(kA));
  EXPECT_EQ(std::count(record.begin(), record.end(), '\n'), 1) << "told: no longer kept";
}

TEST_F(Flush, ALateTickTellsWhatIsTrueNow) {
  h.open();
  h.fire(kA);
  h.at(1min);
  h.said();
  h.stop_until(3h);
  h.resolve(kA);
  h.at(3h);
  EXPECT_THAT(h.said(), ElementsAre("all_resolved close oncall 0/1 over"))
      << "and not that it fired at the last tick that was missed";
}

TEST_F(Flush, EpisodesThatNobodyWasToldOfAreNotKept) {
  h.open();
  h.fire(kA);
  h.at(30s);
  for (int i = 1; i <= 20; ++i) {
    h.at(30s + i * 2s);
    h.resolve(kA);
    h.at(31s + i * 2s);
    h.fire(kA);
  }
  const std::string record = h.changelog.at("issue/" + core::issue_key(kA));
  EXPECT_EQ(std::count(record.begin(), record.end(), '\n'), 2) << "the present one and the first";
}

TEST_F(Flush, AMessageFitsIntoARecordWhateverMaxAlertsSays) {
  h.integrations[0].max_alerts = 0;
  h.open();
  for (int i = 0; i < 1000; ++i) {
    core::Issue issue = h.issue(with(kA, "tensor", std::to_string(i)), core::IssueStatus::firing);
    issue.summary = std::string(2000, 's');
    h.report(issue);
  }
  h.at(30s);
  ASSERT_EQ(h.sent.size(), 1U);
  EXPECT_EQ(h.sent[0].firing_count, 1000U);
  EXPECT_LT(h.sent[0].issues.size(), 200U);
  EXPECT_GT(h.sent[0].issues.size(), 50U);
  EXPECT_EQ(h.sent[0].truncated, 1000U - h.sent[0].issues.size());
  EXPECT_EQ(h.router().stats().truncated, h.sent[0].truncated);
}

TEST_F(Flush, AFlushWithNothingNewWritesNothing) {
  h.options.suppressors.clear();
  h.open();
  h.fire(kA);
  h.at(30s);
  const auto before = h.changelog;
  h.at(1h);
  EXPECT_EQ(h.changelog, before);
  EXPECT_EQ(h.router().stats().flushes, 12U);
  h.fire(kB);
  h.crash();
  h.at(1h + 30s);
  EXPECT_EQ(h.sent.back().decided_at, kStart + 1h + 30s) << "the grid is where it was";
}

}  // namespace
}  // namespace tocsin::routing
