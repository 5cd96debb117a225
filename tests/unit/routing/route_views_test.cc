// The tree as people look at it, and what a replay does to the books.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/replay.h"
#include "tests/unit/routing/harness.h"

namespace tocsin::routing {
namespace {

using testing::ElementsAre;

const RouteSetting& setting(const RouteView& view, const std::string& name) {
  for (const RouteSetting& one : view.settings) {
    if (one.name == name) return one;
  }
  static const RouteSetting kNone;
  return kNone;
}

TEST(RouteViews, ANodeSaysWhatItSetsAndWhatItInherits) {
  Harness h;
  h.tree.receivers = {"oncall"};
  h.tree.group_by = {{"job"}};
  RouteConfig page;
  page.id = "page";
  page.matchers = {"severity=\"critical\""};
  page.group_wait = 10s;
  page.proceed = true;
  h.tree.routes = {page};
  h.rule_actions = {{"overfit", {"oncall"}}};
  h.open();
  const auto views = h.router().routes();
  ASSERT_EQ(views.size(), 3U);
  EXPECT_TRUE(views[0].beside);
  EXPECT_EQ(views[1].id, "{}");
  EXPECT_EQ(views[1].depth, 0U);
  const RouteView& child = views[2];
  EXPECT_EQ(child.id, "page");
  EXPECT_EQ(child.depth, 1U);
  EXPECT_EQ(child.matchers, "{severity=\"critical\"}");
  EXPECT_TRUE(child.proceed);
  EXPECT_FALSE(child.own_receivers);
  EXPECT_THAT(child.receivers, ElementsAre("oncall"));
  EXPECT_EQ(setting(child, "group_wait").value, "10s");
  EXPECT_TRUE(setting(child, "group_wait").own);
  EXPECT_EQ(setting(child, "group_by").value, "[job]");
  EXPECT_FALSE(setting(child, "group_by").own);
  EXPECT_EQ(setting(child, "repeat_interval").value, "4h");
}

TEST(RouteViews, ANodeShowsLaddersDampingAndTimesWhereSomebodyWroteThem) {
  Harness h;
  h.tree.receivers = {"oncall"};
  h.tree.further.steps = {{.after = 10min, .receiver = "oncall"}};
  h.tree.further.on_failure = FailureStep{2min, "oncall"};
  h.tree.flap = FlapConfig{4, 30min, 15min};
  RouteConfig quiet;
  quiet.matchers = {"severity=\"info\""};
  quiet.further.propagate_ack = true;
  h.tree.routes = {quiet};
  h.open();
  const auto views = h.router().routes();
  ASSERT_EQ(views.size(), 2U);
  EXPECT_EQ(setting(views[0], "escalation").value, "[{after: 10m, receiver: oncall}]");
  EXPECT_EQ(setting(views[0], "on_delivery_failure").value, "{after: 2m, receiver: oncall}");
  EXPECT_EQ(setting(views[0], "flap").value, "{episodes: 4, within: 30m, hold: 15m}");
  EXPECT_EQ(setting(views[0], "propagate_ack").value, "");
  EXPECT_TRUE(setting(views[0], "flap").own);
  EXPECT_EQ(setting(views[1], "flap").value, setting(views[0], "flap").value);
  EXPECT_FALSE(setting(views[1], "flap").own);
  EXPECT_EQ(setting(views[1], "propagate_ack").value, "true");
  EXPECT_TRUE(setting(views[1], "propagate_ack").own);
}

core::Delivery replayed(const core::Notification& message, core::DeliveryState state) {
  core::Delivery out;
  out.notification_id = message.notification_id;
  out.integration = message.integration;
  out.group_key = message.group_key;
  out.route_id = message.route_id;
  out.kind = message.kind;
  out.state = state;
  out.handles.emplace_back(core::kReplayHandle, "rpl_1");
  return out;
}

// A message that was given up opened nothing, so nothing would be closed; once a person has sent it again,
// the incident is open.
TEST(Replays, AnIncidentThatAReplayOpenedIsClosed) {
  for (const bool sent_again : {false, true}) {
    Harness h;
    h.tree.receivers = {"oncall"};
    h.open();
    h.fire({{"rule", "overfit"}, {"job", "a"}, {"run_uid", kRun}});
    h.at(1min);
    ASSERT_EQ(h.sent.size(), 1U);
    h.deliver(h.sent[0], core::DeliveryState::dead);
    if (sent_again) {
      h.router().on_delivery(replayed(h.sent[0], core::DeliveryState::delivered), h.now());
      h.commit();
      h.crash();
    }
    h.resolve({{"rule", "overfit"}, {"job", "a"}, {"run_uid", kRun}});
    h.at(20min);
    const bool closed = h.sent.back().kind == core::NotificationKind::close;
    EXPECT_EQ(closed, sent_again);
  }
}

// ---- the dead-man switch

std::vector<std::string> watchdog_said(Harness& h) {
  std::vector<std::string> out;
  for (const auto& message : h.sent) {
    if (message.issues.front().issue.rule == "watchdog") out.push_back(message.reason);
  }
  h.sent.clear();
  return out;
}

TEST(Watchdog, FiresForAsLongAsARouteAsksForIt) {
  Harness h;
  h.tree.receivers = {"oncall"};
  RouteConfig dead_man;
  dead_man.matchers = {"rule=\"watchdog\""};
  dead_man.group_wait = 0s;
  dead_man.group_interval = 1min;
  dead_man.repeat_interval = {{std::nullopt, 1min}};
  h.tree.routes = {dead_man};
  h.open();
  h.at(3min);
  EXPECT_THAT(watchdog_said(h), ElementsAre("first", "repeat", "repeat", "repeat"));
  h.crash();
  h.at(5min);
  EXPECT_THAT(watchdog_said(h), ElementsAre("repeat", "repeat")) << "the same episode";
  h.tree.routes.clear();
  h.open();
  h.at(6min);
  EXPECT_FALSE(
      h.router().find_issue(core::issue_key({{"rule", "watchdog"}, {"severity", "info"}}))->firing);
}

TEST(Watchdog, WithoutARouteOfItsOwnThereIsNone) {
  Harness h;
  h.tree.receivers = {"oncall"};
  h.open();
  h.at(10min);
  EXPECT_TRUE(h.sent.empty());
}

}  // namespace
}  // namespace tocsin::routing
