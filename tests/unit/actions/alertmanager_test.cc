#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "actions/message/prometheus_label.h"
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

core::Notification of_size(std::size_t count, std::size_t text) {
  auto out = sample_notification();
  out.issues.clear();
  for (std::size_t i = 0; i < count; ++i) {
    out.issues.push_back(sample_issue("t" + std::to_string(i)));
    out.issues.back().issue.description = std::string(text, 'd');
  }
  return out;
}

std::set<std::string> tensors_of(const std::vector<HttpRequest>& requests) {
  std::set<std::string> out;
  for (const auto& request : requests) {
    for (const json& alert : json::parse(request.body)) out.insert(alert["labels"]["tensor"]);
  }
  return out;
}

TEST(Alertmanager, SendsAllAlertsInFullInAsManyRequestsAsThatTakes) {
  Workbench bench;
  const auto action = bench.make("alertmanager", "{url: 'https://am/', max_payload: 20KB}");
  EXPECT_EQ(deliver(*action, of_size(100, 1000)).outcome, core::OutcomeClass::delivered);
  EXPECT_EQ(tensors_of(bench.http.requests).size(), 100u);
  EXPECT_GT(bench.http.requests.size(), 5u);
  for (const auto& request : bench.http.requests) {
    EXPECT_LE(request.body.size(), 20'000u);
    EXPECT_THAT(request.body, HasSubstr("ddd"));
  }
}

TEST(Alertmanager, AnAlertThatIsTooLargeByItselfIsShortenedAlone) {
  Workbench bench;
  auto notification = of_size(3, 100);
  notification.issues[1].issue.description = std::string(30'000, 'd');
  const auto action = bench.make("alertmanager", "{url: 'https://am/', max_payload: 20KB}");
  deliver(*action, notification);
  EXPECT_EQ(tensors_of(bench.http.requests).size(), 3u);
  for (const auto& request : bench.http.requests) EXPECT_LE(request.body.size(), 20'000u);
}

TEST(Alertmanager, AFailureInTheMiddleIsRepeatedAsAWhole) {
  Workbench bench;
  const auto action = bench.make("alertmanager", "{url: 'https://am/', max_payload: 20KB}");
  bench.http.answers = {{HttpFailure::none, "", {200, {}, ""}},
                        {HttpFailure::none, "", {503, {}, ""}}};
  const auto notification = of_size(100, 1000);
  EXPECT_EQ(deliver(*action, notification).outcome, core::OutcomeClass::transient);
  EXPECT_EQ(bench.http.requests.size(), 2u);
  bench.http.requests.clear();
  EXPECT_EQ(deliver(*action, notification).outcome, core::OutcomeClass::delivered);
  EXPECT_EQ(tensors_of(bench.http.requests).size(), 100u);
}

/// An Alertmanager that refuses requests with one of these tensors.
struct Choosy final : HttpClient {
  HttpResult send(const HttpRequest& request) override {
    ++requests;
    const json alerts = json::parse(request.body);
    for (const json& alert : alerts) {
      if (refused.contains(alert["labels"]["tensor"])) {
        return {HttpFailure::none, "", {400, {}, "bad label"}};
      }
    }
    for (const json& alert : alerts) taken.insert(alert["labels"]["tensor"]);
    return {HttpFailure::none, "", {200, {}, ""}};
  }
  std::set<std::string> refused, taken;
  int requests = 0;
};

TEST(Alertmanager, AnAlertThatIsRefusedKeepsBackNoOther) {
  Workbench bench;
  Choosy choosy;
  choosy.refused = {"t7", "t30"};
  bench.environment.http = &choosy;
  const auto action = bench.make("alertmanager", "{url: 'https://am/'}");
  const core::AttemptOutcome out = deliver(*action, of_size(64, 10));
  EXPECT_EQ(out.outcome, core::OutcomeClass::bad_payload);
  EXPECT_THAT(out.detail, HasSubstr("2 refused, all others taken"));
  EXPECT_EQ(choosy.taken.size(), 62u);
  EXPECT_LT(choosy.requests, 40);
}

TEST(Alertmanager, WhoRefusesEverythingIsNotAskedForEver) {
  Workbench bench;
  Choosy choosy;
  for (int i = 0; i < 500; ++i) choosy.refused.insert("t" + std::to_string(i));
  bench.environment.http = &choosy;
  const auto action = bench.make("alertmanager", "{url: 'https://am/'}");
  EXPECT_EQ(deliver(*action, of_size(500, 10)).outcome, core::OutcomeClass::bad_payload);
  EXPECT_LT(choosy.requests, 300);
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
