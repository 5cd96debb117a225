#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "actions/prometheus_label.h"
#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using namespace testing_support;
using nlohmann::json;

json posted(Workbench& bench, const core::Notification& notification,
            const std::string& settings = "{url: 'https://am.example:9093/am/'}") {
  EXPECT_EQ(deliver(*bench.make("alertmanager", settings), notification).outcome,
            core::OutcomeClass::delivered);
  return json::parse(bench.http.requests.back().body);
}

TEST(Alertmanager, PostsAnIssueAsAnAlertThatHoldsUntilItIsNotRepeated) {
  Workbench bench;
  bench.environment.external_url = "https://tocsin.example";
  const json alerts = posted(bench, sample_notification());
  EXPECT_EQ(bench.http.requests[0].url, "https://am.example:9093/am/api/v2/alerts");
  ASSERT_EQ(alerts.size(), 1u);
  EXPECT_EQ(alerts[0]["labels"], (json{{"alertname", "exploding_tensor"},
                                       {"rule", "exploding_tensor"},
                                       {"severity", "error"},
                                       {"job", "digits"},
                                       {"run_uid", to_text(kRun)},
                                       {"tensor", "gradient/conv1.weight"},
                                       {"worker", "worker_0"},
                                       {"cluster", "c1"}}));
  EXPECT_EQ(alerts[0]["annotations"],
            (json{{"summary", sample_issue().issue.summary},
                  {"recommendation", "Lower the learning rate or clip gradients."}}));
  EXPECT_EQ(alerts[0]["startsAt"], "2026-01-02T03:04:04.678Z");
  EXPECT_EQ(alerts[0]["endsAt"], "2026-01-03T03:04:05.678Z");  // decided_at + 24 h
  EXPECT_EQ(alerts[0]["generatorURL"], "https://tocsin.example");
}

TEST(Alertmanager, AResolveIsTheSameAlertWithItsEnd) {
  Workbench bench;
  const json before = posted(bench, sample_notification());
  const json after = posted(bench, sample_notification("two", core::NotificationKind::close));
  EXPECT_EQ(after[0]["labels"], before[0]["labels"]);
  EXPECT_EQ(after[0]["startsAt"], before[0]["startsAt"]);
  EXPECT_EQ(after[0]["endsAt"], "2026-01-02T03:05:05.678Z");
}

TEST(Alertmanager, AnEndBeforeTheBeginningIsNotSentAsItWouldBeRefused) {
  Workbench bench;
  auto close = sample_notification("two", core::NotificationKind::close);
  close.issues[0].issue.ends_at = close.issues[0].issue.starts_at - 5s;
  const json alert = posted(bench, close)[0];
  EXPECT_EQ(alert["startsAt"], alert["endsAt"]);
}

TEST(Alertmanager, ResolveTimeoutCountsFromTheDecisionSoThatEveryAttemptSaysTheSame) {
  Workbench bench;
  const auto action = bench.make("alertmanager", "{url: 'https://am/', resolve_timeout: 5m}");
  auto notification = sample_notification();
  notification.rendered = *action->render(notification);
  bench.clock.advance(90s);
  action->execute(notification, 2, 1s);
  EXPECT_EQ(json::parse(bench.http.requests[0].body)[0]["endsAt"], "2026-01-02T03:09:05.678Z");
}

TEST(Alertmanager, OffersOnlyNamesAndLinksThatItTakes) {
  Workbench bench;
  auto notification = sample_notification();
  core::Issue& issue = notification.issues[0].issue;
  issue.labels.set("2nd.größe", "x");
  issue.labels.set("alertname", "my own");
  issue.annotations = {{"dash.board", "https://grafana.example/d/1"}};
  issue.generator_url = "grafana";
  const json alert = posted(bench, notification)[0];
  EXPECT_EQ(alert["labels"]["_nd_gr____e"], "x");
  EXPECT_EQ(alert["labels"]["alertname"], "my own");
  EXPECT_EQ(alert["annotations"]["dash_board"], "https://grafana.example/d/1");
  EXPECT_FALSE(alert.contains("generatorURL"));
}

TEST(Alertmanager, TheShortFormKeepsEveryAlert) {
  Workbench bench;
  auto notification = sample_notification();
  notification.issues.push_back(sample_issue("b"));
  notification.minimal = true;
  const json alerts = posted(bench, notification);
  ASSERT_EQ(alerts.size(), 2u);
  EXPECT_EQ(alerts[1]["labels"]["tensor"], "b");
  EXPECT_FALSE(alerts[1]["annotations"].contains("recommendation"));
}

TEST(Alertmanager, TakesMoreAlertsPerMessageThanPeopleWould) {
  const auto loaded = load("receivers: {a: {alertmanager: {url: 'https://am/'}}}\n");
  EXPECT_EQ(loaded.errors, "");
  EXPECT_EQ(loaded.receivers.integrations.at(0).common.max_alerts, 500u);
  EXPECT_THAT(load("receivers: {a: {alertmanager: {}}}\n").errors, HasSubstr("url"));
}

TEST(PrometheusLabels, StayApartAndKeepTheNamesThatAreValid) {
  EXPECT_THAT(prometheus_labels({{"a.b", "1"}, {"a_b", "2"}, {"a-b", "3"}}),
              ElementsAre(Pair("a_b", "2"), Pair("a_b_", "3"), Pair("a_b__", "1")));
  EXPECT_EQ(prometheus_label("9a"), "_a");
}

}  // namespace
}  // namespace tocsin::actions
