// The flush table; silences, episodes and repeats: flush_repeat_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "routing/tables/state_codec.h"
#include "tests/unit/routing/flush_fixture.h"

namespace tocsin::routing {
namespace {

using core::NotificationKind;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Flush = FlushTest;

TEST_F(Flush, OpensUpdatesAndClosesOneIncident) {
  h.open();
  h.fire(kTensorA);
  h.at(29s);
  EXPECT_THAT(h.said(), IsEmpty());
  h.at(30s);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  h.at(60s);
  h.fire(kTensorB);
  h.at(30s + 5min);
  EXPECT_THAT(h.said(), ElementsAre("new_issues update oncall 2/0"));
  h.resolve(kTensorA);
  h.at(30s + 10min);
  EXPECT_THAT(h.said(), ElementsAre("some_resolved update oncall 1/1"));
  h.resolve(kTensorB);
  h.at(30s + 15min);
  EXPECT_THAT(h.said(), ElementsAre("all_resolved close oncall 0/1 over"));
  EXPECT_EQ(h.router().stats().groups, 0U);
}

TEST_F(Flush, SaysNothingOfAnIssueThatEndedBeforeTheFirstFlush) {
  h.open();
  h.fire(kTensorA);
  h.at(10s);
  h.resolve(kTensorA);
  h.at(1h);
  EXPECT_THAT(h.said(), IsEmpty());
  EXPECT_EQ(h.decisions.size(), 1U);
  EXPECT_EQ(h.decisions.front().reason, "none");
}

TEST_F(Flush, TellsOfAnIssueWhoseJobEndedBeforeTheFirstFlush) {
  h.open();
  h.fire(with(kTensorA, "run_uid", kRun));
  h.at(1s);
  h.job(core::JobPhase::ended, 1);
  h.at(30s);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 0/1 over"));
  h.at(30s + 5min);
  EXPECT_THAT(h.said(), ElementsAre("all_resolved close oncall 0/1 over"));
  EXPECT_EQ(h.router().stats().groups, 0U);
}

TEST_F(Flush, AJobsEndThatNobodyWantsToHearOfLeavesTheGroup) {
  h.integrations.front().when = "job=\"other\"";
  h.open();
  h.fire(with(kTensorA, "run_uid", kRun));
  h.job(core::JobPhase::ended, 1);
  h.at(30s);
  EXPECT_THAT(h.said(), IsEmpty());
  EXPECT_EQ(h.router().stats().groups, 0U);
}

TEST_F(Flush, ANotificationNamesItsGroupItsIssuesAndItsLimits) {
  h.integrations.front().max_age = 1h;
  h.open();
  h.fire(kTensorA);
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
  EXPECT_EQ(note.common_labels, kTensorA);
  EXPECT_EQ(note.issues.at(0).issue_key, core::issue_key(kTensorA));
  EXPECT_EQ(note.issues.at(0).issue.ends_at, std::nullopt);
  EXPECT_EQ(note.decided_at, kStart + 30s);
  EXPECT_EQ(note.expires_at, kStart + 30s + 1h);
  EXPECT_EQ(note.config_version, "v1");
  EXPECT_TRUE(note.firing);
}

TEST_F(Flush, TheMostSevereComesFirstAndTheRestIsCounted) {
  h.integrations.front().max_alerts = 2;
  h.open();
  h.fire(with(kTensorA, "tensor", "old"));
  h.at(1s);
  h.fire(with(kTensorA, "tensor", "young"));
  h.fire(with(with(kTensorA, "tensor", "worst"), "severity", "critical"));
  h.at(30s);
  const core::Notification& note = h.sent.at(0);
  ASSERT_EQ(note.issues.size(), 2U);
  EXPECT_EQ(note.issues[0].issue.labels.get("tensor"), "worst");
  EXPECT_EQ(note.issues[1].issue.labels.get("tensor"), "old");
  EXPECT_EQ(note.truncated, 1U);
  EXPECT_EQ(note.firing_count, 3U);
  EXPECT_EQ(note.common_labels,
            (core::Labels{{"rule", "nan"}, {"job", "j"}, {"severity", "critical"}}))
      << "the severity of its first sign";
}

TEST_F(Flush, ACloseMayWaitAWeekForItsDelivery) {
  h.integrations.front().max_age = 1h;
  h.open();
  h.fire(kTensorA);
  h.at(30s);
  h.resolve(kTensorA);
  h.at(30s + 5min);
  EXPECT_EQ(h.sent.at(1).expires_at, h.sent.at(1).decided_at + 24h * 7);
}

TEST_F(Flush, ARaisedSeverityIsNewsAndALoweredOneIsNot) {
  h.open();
  h.fire(with(kTensorA, "severity", "warning"));
  h.at(30s);
  h.fire(with(kTensorA, "severity", "critical"));
  h.at(30s + 5min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0", "severity_raised update oncall 1/0"));
  h.fire(with(kTensorA, "severity", "warning"));
  h.at(30s + 10min);
  EXPECT_THAT(h.said(), IsEmpty());
}

TEST_F(Flush, AnIntegrationHearsOnlyOfWhatItsFilterLetsThrough) {
  h.integrations.front().when = "tensor=\"b\"";
  h.open();
  h.fire(kTensorA);
  h.at(30s);
  EXPECT_THAT(h.said(), IsEmpty());
  h.fire(kTensorB);
  h.at(30s + 5min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  EXPECT_EQ(h.sent.at(0).issues.at(0).issue.labels, kTensorB);
}

TEST_F(Flush, IntegrationsOfOneGroupKeepTheirOwnBooks) {
  h.integrations = {webhook("one"), webhook("two")};
  h.integrations[1].when = "tensor=\"b\"";
  h.tree.receivers = {"one", "two"};
  h.open();
  h.fire(kTensorA);
  h.at(30s);
  h.fire(kTensorB);
  h.at(30s + 5min);
  EXPECT_THAT(h.said(),
              ElementsAre("first open one 1/0", "new_issues update one 2/0", "first open two 1/0"));
}

TEST_F(Flush, ADisabledIntegrationIsToldNothing) {
  h.integrations.front().enabled = false;
  h.open();
  h.fire(kTensorA);
  h.at(1h);
  EXPECT_THAT(h.said(), IsEmpty());
}

TEST_F(Flush, AShadowIssueIsRecordedAndNeverTold) {
  h.open();
  core::Issue issue = h.issue(kTensorA, core::IssueStatus::firing);
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
    h.fire(kTensorA);
    h.at(h.now() - kStart + 10min);
    h.resolve(kTensorA);
    h.at(h.now() - kStart + 10min);
  }
  std::set<std::string> ids;
  for (const auto& note : h.sent) ids.insert(note.notification_id);
  EXPECT_EQ(h.sent.size(), 12U);
  EXPECT_EQ(ids.size(), h.sent.size());
}

// W12: two sibling routes with the same matchers and receiver are independent.
TEST_F(Flush, W12SiblingsWithTheSameMatchersAndReceiverAreBothHeard) {
  RouteConfig twin;
  twin.matchers = {"rule=\"nan\""};
  twin.proceed = true;
  h.tree.routes = {twin, twin};
  h.open();
  h.fire(kTensorA);
  h.at(30s);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0", "first open oncall 1/0"));
  EXPECT_NE(h.sent[0].route_id, h.sent[1].route_id);
  EXPECT_NE(h.sent[0].notification_id, h.sent[1].notification_id);
  EXPECT_EQ(h.sent[0].group_key, h.sent[1].group_key);
}

TEST_F(Flush, AToldEpisodeKeepsItsOwnTimesWhenALaterOneFollows) {
  h.open();
  h.fire(kTensorA);
  h.at(60s);
  core::Issue end = h.issue(kTensorA, core::IssueStatus::resolved);
  end.summary = "back below the limit";
  h.report(end);
  h.silenced = {{"tensor", "a"}};
  h.at(100s);
  h.fire(kTensorA);
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
  EXPECT_EQ(told.issue.ending->summary, "back below the limit");
  const std::string record = h.changelog.at("issue/" + core::issue_key(kTensorA));
  EXPECT_TRUE(decode_issue_state(record)->past.empty()) << "told: no longer kept";
}

TEST_F(Flush, ALateTickTellsWhatIsTrueNow) {
  h.open();
  h.fire(kTensorA);
  h.at(1min);
  h.said();
  h.stop_until(3h);
  h.resolve(kTensorA);
  h.at(3h);
  EXPECT_THAT(h.said(), ElementsAre("all_resolved close oncall 0/1 over"))
      << "and not that it fired at the last tick that was missed";
}

TEST_F(Flush, EpisodesThatNobodyWasToldOfAreNotKept) {
  h.open();
  h.fire(kTensorA);
  h.at(30s);
  for (int i = 1; i <= 20; ++i) {
    h.at(30s + i * 2s);
    h.resolve(kTensorA);
    h.at(31s + i * 2s);
    h.fire(kTensorA);
  }
  const std::string record = h.changelog.at("issue/" + core::issue_key(kTensorA));
  EXPECT_EQ(decode_issue_state(record)->past.size(), 1U) << "beside the present one the first";
}

TEST_F(Flush, AMessageFitsIntoARecordWhateverMaxAlertsSays) {
  h.integrations[0].max_alerts = 0;
  h.open();
  for (int i = 0; i < 1000; ++i) {
    core::Issue issue =
        h.issue(with(kTensorA, "tensor", std::to_string(i)), core::IssueStatus::firing);
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
  h.fire(kTensorA);
  h.at(30s);
  const auto before = h.changelog;
  h.at(1h);
  EXPECT_EQ(h.changelog, before);
  EXPECT_EQ(h.router().stats().flushes, 12U);
  h.fire(kTensorB);
  h.crash();
  h.at(1h + 30s);
  EXPECT_EQ(h.sent.back().decided_at, kStart + 1h + 30s) << "the grid is where it was";
}

}  // namespace
}  // namespace tocsin::routing
