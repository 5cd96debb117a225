// Restarts: state comes back from the changelog, also under a changed configuration.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/identity.h"
#include "routing/tables/state_codec.h"
#include "tests/unit/routing/harness.h"

namespace tocsin::routing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

core::Labels tensor(const std::string& name) {
  return {{"rule", "nan"}, {"job", "j"}, {"tensor", name}};
}

class Restart : public ::testing::Test {
 protected:
  Harness h;
};

TEST_F(Restart, K3AWaitGoesOnToItsOriginalDeadline) {
  h.open();
  h.fire(tensor("a"));
  h.at(10s);
  h.crash();
  EXPECT_EQ(*h.router().next_deadline(), kStart + 30s);
  h.at(30s);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  EXPECT_EQ(h.sent[0].decided_at, kStart + 30s);
}

TEST_F(Restart, OfSeveralRecordsOfAnIssueTheLastOneCounts) {
  h.open();
  h.fire(tensor("a"));
  const std::string key = "issue/" + core::issue_key(tensor("a"));
  const std::string fires = h.changelog.at(key);
  h.resolve(tensor("a"));
  const std::string over = h.changelog.at(key);
  ASSERT_TRUE(Router::restores_as_read(key));
  const auto firing_after = [&](const std::vector<std::optional<std::string>>& records) {
    auto router = Router::create(h.tree, {}, {webhook("oncall")}, h.options);
    for (const auto& one : records) {
      if (one) {
        EXPECT_TRUE((*router)->restore(key, *one));
      } else {
        (*router)->restore_gone(key);
      }
    }
    (*router)->restored(h.now());
    return std::pair((*router)->stats().issues, (*router)->stats().firing);
  };
  const auto known = [](std::uint64_t issues, std::uint64_t firing) {
    return std::pair(issues, firing);
  };
  EXPECT_EQ(firing_after({fires}), known(1, 1));
  EXPECT_EQ(firing_after({fires, over}), known(1, 0));
  EXPECT_EQ(firing_after({over, fires}), known(1, 1));
  EXPECT_EQ(firing_after({fires, std::nullopt}), known(0, 0));
  EXPECT_EQ(firing_after({fires, std::nullopt, fires}), known(1, 1));
}

TEST_F(Restart, K3AWaitThatEndedWhileTheRouterWasDownEndsAtOnce) {
  h.open();
  h.fire(tensor("a"));
  h.stop_until(17min);
  h.open();
  h.at(17min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  h.fire(tensor("b"));
  h.at(21min);
  EXPECT_EQ(h.sent.back().decided_at, kStart + 30s + 20min) << "the grid survives";
}

TEST_F(Restart, MissedTicksCollapseIntoOne) {
  h.tree.repeat_interval = std::vector<RepeatStep>{{std::nullopt, 5min}};
  h.open();
  h.fire(tensor("a"));
  h.at(30s);
  h.stop_until(10h + 1min);
  h.open();
  h.at(10h + 1min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0", "repeat repeat oncall 1/0"));
}

TEST_F(Restart, TurnsThatPassedInSilenceCountForTheGapBetweenTwoEnds) {
  // Of a turn at which there is nothing to say no record is made; the gap after it holds all the same.
  const auto told_at = [](bool crash) {
    Harness world;
    world.options.suppressors.clear();
    world.tree.group_by = {"job"};
    world.open();
    core::Labels labels = tensor("a");
    labels.set("run_uid", kRun);
    world.fire(labels);
    world.at(30s + 25min + 1s);
    if (crash) world.crash();
    world.job(core::JobPhase::ended, 1);
    world.at(1h);
    return world.sent.back().decided_at;
  };
  EXPECT_EQ(told_at(false), kStart + 30s + 25min + 10s);
  EXPECT_EQ(told_at(true), told_at(false));
}

TEST_F(Restart, AnUrgentTurnThatPassedInSilenceIsNotTakenAgain) {
  h.options.suppressors.clear();
  h.tree.immediate_on = "severity=critical";
  h.tree.group_by = {{"job"}};
  const auto fire = [&](const std::string& name, const std::string& run) {
    core::Labels labels = tensor(name);
    labels.set("severity", "critical");
    labels.set("run_uid", run);
    h.fire(labels);
  };
  h.open();
  fire("a", kRun);
  h.at(5s);
  fire("b", core::to_text(core::run_uid_for("j", "another")));
  h.at(35s);  // told at 12 s, as another run is news; the urgent turn at 32 s had nothing to say
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0", "new_issues update oncall 2/0"));
  h.crash();
  core::Labels labels = tensor("a");
  labels.set("severity", "critical");
  labels.set("run_uid", kRun);
  h.resolve(labels);
  h.at(1min);
  EXPECT_THAT(h.said(), IsEmpty()) << "what has ended is told at the next turn of the grid";
}

TEST_F(Restart, AChangeAfterAStartIsWrittenThoughTheStartMeantToLookAnyway) {
  h.options.suppressors.clear();
  h.open();
  h.fire(tensor("a"));
  h.at(11min);  // two turns have passed without a record
  h.crash();
  h.fire(tensor("b"));
  std::map<std::string, std::string> snapshot;
  for (const auto& record : h.router().snapshot()) snapshot[record.key] = *record.value;
  EXPECT_EQ(h.changelog, snapshot);
}

TEST_F(Restart, K4ADecisionThatWasNotCommittedIsMadeAgainWithTheSameId) {
  h.open();
  h.fire(tensor("a"));
  h.stop_until(30s);
  h.router().tick(h.now());
  const Output lost = h.router().take();
  ASSERT_EQ(lost.notifications.size(), 1U);
  h.crash();
  h.at(30s);
  ASSERT_EQ(h.sent.size(), 1U);
  EXPECT_EQ(h.sent[0].notification_id, lost.notifications[0].notification_id);
}

TEST_F(Restart, NothingIsFlushedBeforeTheBarrierIsLifted) {
  auto made = Router::create(h.tree, {}, h.integrations, h.options);
  Router& router = **made;
  router.on_issue(h.issue(tensor("a"), core::IssueStatus::firing), kStart);
  router.tick(kStart + 1h);
  EXPECT_EQ(router.next_deadline(), std::nullopt);
  EXPECT_THAT(router.take().notifications, IsEmpty());
  router.restored(kStart + 1h);
  router.tick(kStart + 1h);
  EXPECT_EQ(router.take().notifications.size(), 1U);
}

TEST_F(Restart, TheSnapshotIsTheChangelog) {
  h.open();
  h.fire(tensor("a"));
  h.job(core::JobPhase::started, 1);
  h.at(30s);
  h.fire(tensor("b"));
  std::map<std::string, std::string> snapshot;
  for (const auto& record : h.router().snapshot()) snapshot[record.key] = *record.value;
  EXPECT_EQ(snapshot, h.changelog);
  h.crash();
  EXPECT_THAT(h.router().take().state, IsEmpty());
  std::map<std::string, std::string> again;
  for (const auto& record : h.router().snapshot()) again[record.key] = *record.value;
  EXPECT_EQ(again, snapshot);
}

TEST_F(Restart, WhatIsOnlySaidAgainWritesNoRecordOfItsIssue) {
  h.open();
  h.fire(tensor("a"));
  h.at(1min);
  const std::string key = "issue/" + core::issue_key(tensor("a"));
  const std::string first = h.changelog.at(key);
  core::Issue again = h.issue(tensor("a"), core::IssueStatus::firing);
  again.step = 500;
  h.report(again);
  EXPECT_EQ(h.changelog.at(key), first);
  // … nor does it take the place of what was found;
  EXPECT_EQ(h.router().find_issue(core::issue_key(tensor("a")))->issue.step, std::nullopt);
  // what is worse is news and is written at once,
  again = h.issue(tensor("a"), core::IssueStatus::firing);
  again.step = 501;
  again.severity = core::Severity::critical;
  again.summary = "worse";
  h.report(again);
  const std::string second = h.changelog.at(key);
  EXPECT_EQ(decode_issue_state(second)->issue.whole().summary, "worse");
  EXPECT_EQ(decode_issue_state(second)->issue.whole().step, 501);
  // and so is what is said again some minutes later.
  h.at(10min);
  again = h.issue(tensor("a"), core::IssueStatus::firing);
  again.summary = "as bad as before";
  h.report(again);
  EXPECT_NE(h.changelog.at(key), second);
  EXPECT_EQ(decode_issue_state(h.changelog.at(key))->issue.whole().summary, "worse");
}

TEST_F(Restart, AnExpiryThatReportsPutOffIsNotForgotten) {
  h.options.limits.resolve_timeout = 5min;
  h.open();
  const auto say = [&] {
    core::Issue report = h.issue(tensor("a"), core::IssueStatus::firing);
    report.explicit_expiry = false;
    h.report(report);
  };
  say();
  for (int minute = 1; minute <= 19; ++minute) {
    h.at(minute * 1min);
    say();
  }
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  h.crash();
  h.at(19min + 3min + 45s);  // at least, whatever was not written
  EXPECT_THAT(h.said(), IsEmpty());
  h.at(25min + 30s);
  EXPECT_THAT(h.said(), ElementsAre("all_resolved close oncall 0/1 over"));
}

TEST_F(Restart, DamagedRecordsAreNamedAndLeftOut) {
  h.open();
  h.fire(tensor("a"));
  auto made = Router::create(h.tree, {}, h.integrations, h.options);
  Router& router = **made;
  const std::string hash(64, '0');
  for (const auto& [key, value] :
       std::map<std::string, std::string>{{"issue/x", "{}"},
                                          {"issue/y", "{}\n{}"},
                                          {"group/" + hash, "[1,2]"},
                                          {"group/" + hash + "0", "{\"key\": 7}"},
                                          {"log/" + hash + "/a", "nope"},
                                          {"log/short", "{}"},
                                          {"member/short", "1"},
                                          {"run/u", "\xff\xfe"},
                                          {"run/deep", std::string(400'000, '[')},
                                          {"log/" + hash + "/deep", std::string(400'000, '[')},
                                          {"group/deep", std::string(400'000, '[')},
                                          {"issue/deep", std::string(400'000, '[') + "\n{}"},
                                          {"seen/s", "12x"}}) {
    const auto status = router.restore(key, value);
    ASSERT_FALSE(status) << key;
    EXPECT_EQ(status.error().code, core::Code::data_loss) << key;
    EXPECT_NE(status.error().message.find(key), std::string::npos);
  }
  EXPECT_TRUE(router.restore("delivery/other", "anything"));
  EXPECT_TRUE(router.restore("member/" + hash + "/ghost", "1"));
  EXPECT_TRUE(router.restore(
      "log/" + hash + "/oncall",
      R"({"told":[],"owed":[],"last_tick":null,"seq":0,"placed":false,"pending":[],"handles":[]})"));
  router.restored(kStart);
  const Output output = router.take();
  ASSERT_EQ(output.state.size(), 2U) << "what belongs to nothing is removed";
  EXPECT_EQ(output.state[0].value, std::nullopt);
}

TEST_F(Restart, ARouteThatIsGoneIsClosedBeforeTheNewOneOpens) {
  RouteConfig nan;
  nan.matchers = {"rule=nan"};
  nan.id = "old";
  h.tree.routes = {nan};
  h.open();
  h.fire(tensor("a"));
  h.at(1min);
  h.tree.routes[0].id = "new";
  h.open();
  h.at(1min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0", "regrouped close oncall 0/1 over",
                                    "first open oncall 1/0"));
  EXPECT_EQ(h.sent[0].group_hash, h.sent[1].group_hash);
  EXPECT_NE(h.sent[1].group_hash, h.sent[2].group_hash);
  EXPECT_EQ(h.sent[2].route_id, "new");
}

TEST_F(Restart, AChangedGroupingClosesAndAnnouncesAnew) {
  h.open();
  h.fire(tensor("a"));
  h.fire(tensor("b"));
  h.at(1min);
  h.tree.group_by = {{"tensor"}};
  h.open();
  h.at(1min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 2/0", "regrouped close oncall 0/2 over",
                                    "first open oncall 1/0", "first open oncall 1/0"));
}

TEST_F(Restart, GoingBackToAnOldGroupingNeverGivesAnIdTwice) {
  h.open();
  h.fire(tensor("a"));
  h.at(1min);
  for (int i = 0; i < 4; ++i) {
    h.tree.group_by = i % 2 == 0 ? std::vector<std::string>{"rule", "job", "none"}
                                 : std::vector<std::string>{"rule", "job"};
    h.open();
    h.at(h.now() - kStart + 1min);
  }
  std::set<std::string> ids;
  for (const auto& note : h.sent) ids.insert(note.notification_id);
  EXPECT_EQ(h.sent.size(), 9U);
  EXPECT_EQ(ids.size(), 9U);
}

TEST_F(Restart, AnIntegrationThatLeavesTheRouteIsClosedThere) {
  h.integrations.push_back(webhook("page"));
  h.tree.receivers = {"oncall", "page"};
  h.open();
  h.fire(tensor("a"));
  h.at(1min);
  h.said();
  h.tree.receivers = {"oncall"};
  h.open();
  h.at(1h);
  EXPECT_THAT(h.said(), ElementsAre("regrouped close page 0/1 over"));
}

TEST_F(Restart, AnIntegrationThatJoinsTheRouteIsToldAtTheNextTick) {
  h.integrations.push_back(webhook("page"));
  h.open();
  h.fire(tensor("a"));
  h.at(1min);
  h.said();
  h.tree.receivers = {"oncall", "page"};
  h.open();
  h.at(1h);
  EXPECT_THAT(h.said(), ElementsAre("first open page 1/0"));
}

TEST_F(Restart, ARouteThatIsNewHearsOfWhatFires) {
  h.open();
  h.fire(tensor("a"));
  h.at(1min);
  h.said();
  RouteConfig extra;
  extra.matchers = {"rule=nan"};
  extra.proceed = true;
  h.tree.routes = {extra, RouteConfig{}};
  h.open();
  h.at(2min);
  EXPECT_THAT(h.said(), ::testing::Contains("first open oncall 1/0"));
}

TEST_F(Restart, AShortenedIntervalCapsTheOneThatRuns) {
  h.tree.group_interval = 1h;
  h.open();
  h.fire(tensor("a"));
  h.at(1min);
  h.tree.group_interval = 2min;
  h.open();
  h.fire(tensor("b"));
  h.at(3min);
  EXPECT_EQ(h.sent.back().reason, "new_issues");
}

TEST_F(Restart, AReloadKeepsTimersAndBooks) {
  h.open();
  h.fire(tensor("a"));
  h.at(2min);
  h.tree.routes = {RouteConfig{}};
  h.tree.routes[0].matchers = {"rule=other"};
  h.open();
  EXPECT_EQ(*h.router().next_deadline(), kStart + 30s + 5min);
  h.at(1h);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
}

}  // namespace
}  // namespace tocsin::routing
