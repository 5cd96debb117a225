// A test message by each action: what it asks, what is shown of it, and what it leaves behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using namespace testing_support;
using nlohmann::json;

constexpr char kTriedHook[] = "{url: 'https://example.com/in'}";
constexpr char kTriedPager[] = "{routing_key: 'canary\"key-0123456789-0123456789'}";

class TriedActions : public ::testing::Test {
 protected:
  Trial tried(const std::string& type, const std::string& settings,
              const TrialOptions& options = {}) {
    const Loaded loaded = load("receivers: {oncall: {" + type + ": " + settings + "}}\n");
    EXPECT_EQ(loaded.errors, "");
    TrialOptions by_ada = options;
    by_ada.person = "ada@node-7";
    return try_integration(loaded.receivers.integrations.at(0), bench.environment, by_ada);
  }
  void answer(int status, std::string body = "{}") {
    bench.http.answers.push_back({HttpFailure::none, "", {status, {}, std::move(body)}});
  }
  static std::string text_of(const Trial& trial) { return core::to_json(to_value(trial)); }

  Workbench bench;
};

TrialOptions trial_drill(bool dry_run = false) {
  TrialOptions out;
  out.drill = true;
  out.dry_run = dry_run;
  return out;
}

TEST_F(TriedActions, AMessageIsMarkedNamesWhoSentItAndIsShownWithItsAnswer) {
  answer(202, "thanks");
  const Trial trial = tried("webhook", kTriedHook);
  EXPECT_TRUE(trial.passed());
  ASSERT_THAT(trial.steps, SizeIs(1));
  ASSERT_THAT(trial.steps[0].exchanges, SizeIs(1));
  const Exchange& shown = trial.steps[0].exchanges[0];
  EXPECT_THAT(shown.request, HasSubstr("POST https://example.com"));
  EXPECT_EQ(shown.request_body, bench.http.requests.at(0).body);
  EXPECT_EQ(shown.answer, "HTTP 202");
  EXPECT_EQ(shown.answer_body, "thanks");
  const json body = json::parse(shown.request_body);
  EXPECT_EQ(body["data"]["headline"], "[warning] TEST message, no action is needed");
  EXPECT_EQ(body["data"]["common_labels"]["test"], "true");
  EXPECT_THAT(shown.request_body,
              HasSubstr("TEST: ada@node-7 tries receiver oncall with tocsin send-test."));
  EXPECT_FALSE(body.contains("causationid")) << "no event caused it, and CloudEvents has no empty "
                                                "attribute";
}

struct HeldCredentials {
  std::string type;
  std::string settings;
  std::vector<std::string> credentials;
};

TEST_F(TriedActions, NothingThatIsShownHoldsACredential) {
  const std::vector<HeldCredentials> all{
      {"discord", "{url: 'https://discord.com/api/webhooks/1/canary-token'}", {"canary-token"}},
      {"mattermost", "{url: 'https://chat.example/hooks/canary-token'}", {"canary-token"}},
      {"msteams", "{url: 'https://flows.example/workflows/canary-token'}", {"canary-token"}},
      {"ntfy", "{topic: canary-token}", {"canary-token"}},
      {"slack", "{url: 'https://hooks.slack.com/services/T/B/canary-token'}", {"canary-token"}},
      {"telegram", "{bot_token: '1:canary-token', chat_id: '-100200'}", {"1:canary-token"}},
      {"pagerduty", kTriedPager, {R"(canary\"key-0123456789-0123456789)"}},
      {"slack", "{token: xoxb-canary-token, channel: C07}", {"xoxb-canary-token"}},
      {"jsm", "{api_key: canary-genie-key}", {"canary-genie-key"}},
      {"grafana_irm",
       "{url: 'https://oncall.example/integrations/canary-token/'}",
       {"canary-token"}},
      {"servicenow",
       "{url: 'https://acme.example', mode: incident, basic_auth: {username: u, password: "
       "canary-password}}",
       {"canary-password"}},
      {"jira",
       "{url: 'https://acme.example', project: OPS, email: a@b.example, api_token: canary-token}",
       {"canary-token"}},
      {"sns",
       "{topic_arn: 'arn:aws:sns:eu-central-1:1:x', aws: {region: eu-central-1, access_key_id: "
       "canary-key-id, secret_access_key: canary-secret}}",
       {"canary-key-id", "canary-secret"}},
      {"webhook",
       "{url: 'https://example.com/canary-path', bearer_token: canary-bearer, secret: "
       "whsec_Y2FuYXJ5Y2FuYXJ5Y2FuYXJ5Y2FuYXJ5}",
       {"/canary-path", "canary-bearer"}},
      {"email",
       "{to: [a@b.example], host: smtp.example, username: u, password: canary-password}",
       {"canary-password"}},
      {"mqtt",
       "{host: broker.example, username: u, password: canary-password}",
       {"canary-password"}}};
  for (const HeldCredentials& one : all) {
    std::string echo = "not with";
    for (const std::string& credential : one.credentials) echo += " " + credential;
    bench.http.answers = {{HttpFailure::none, "", {400, {{"set-cookie", "canary-cookie"}}, echo}}};
    bench.mailer.answers = {{MailFailure::refused, 550, false, {}, echo}};
    bench.mqtt.answers = {{MqttFailure::login, 0x86, echo}};
    const Trial trial = tried(one.type, one.settings);
    ASSERT_THAT(trial.steps, SizeIs(1)) << one.type;
    ASSERT_THAT(trial.steps[0].exchanges, Not(IsEmpty())) << one.type;
    const Exchange& shown = trial.steps[0].exchanges[0];
    EXPECT_THAT(shown.answer + shown.answer_body, HasSubstr("<redacted>")) << one.type;
    EXPECT_THAT(text_of(trial), Not(HasSubstr("canary"))) << one.type;
  }
}

TEST_F(TriedActions, AHeaderThatByItsNameHoldsACredentialIsMasked) {
  const Trial trial =
      tried("webhook", "{url: 'https://example.com/in', headers: {X-Api-Key: canary, X-Team: ml}}");
  EXPECT_THAT(trial.steps.at(0).exchanges.at(0).request_headers,
              AllOf(Contains(std::pair<std::string, std::string>("X-Api-Key", "<redacted>")),
                    Contains(std::pair<std::string, std::string>("X-Team", "ml"))));
}

TEST_F(TriedActions, ADrillOpensAnIncidentAndClosesThatOne) {
  answer(202);
  answer(202);
  const Trial trial = tried("pagerduty", kTriedPager, trial_drill());
  EXPECT_TRUE(trial.passed());
  EXPECT_THAT(trial.notes, IsEmpty());
  ASSERT_THAT(bench.http.requests, SizeIs(2));
  const json open = json::parse(bench.http.requests[0].body);
  const json close = json::parse(bench.http.requests[1].body);
  EXPECT_EQ(open["event_action"], "trigger");
  EXPECT_EQ(close["event_action"], "resolve");
  EXPECT_EQ(open["dedup_key"], close["dedup_key"]);
  bench.clock.advance(1s);
  tried("pagerduty", kTriedPager);
  EXPECT_NE(json::parse(bench.http.requests.at(2).body)["dedup_key"], open["dedup_key"])
      << "two tests are two incidents";
}

TEST_F(TriedActions, WhatAToolSaysLaterIsWaitedFor) {
  const std::string accepted = R"({"requestId":"req-1"})";
  const std::string done = R"({"data":{"isSuccess":true,"status":"Created alert"}})";
  TrialOptions options;
  std::vector<core::Duration> pauses;
  options.pause = [&](core::Duration wait) { pauses.push_back(wait); };
  answer(202, accepted);
  answer(404);
  answer(200, done);
  const Trial trial = tried("jsm", "{api_key: canary-genie-key}", options);
  EXPECT_TRUE(trial.passed());
  EXPECT_THAT(pauses, ::testing::ElementsAre(2s, 5s));
  EXPECT_THAT(trial.steps.at(0).exchanges, SizeIs(3));
  answer(202, accepted);
  EXPECT_FALSE(tried("jsm", "{api_key: canary-genie-key}").passed()) << "nobody waits";
}

TEST_F(TriedActions, ADrillChangesTheMessageThatItOpened) {
  answer(200, R"({"ok":true,"result":{"message_id":77}})");
  answer(200, R"({"ok":true,"result":{"message_id":77}})");
  const Trial trial =
      tried("telegram", "{bot_token: '1:canary-token', chat_id: '-100200'}", trial_drill());
  EXPECT_TRUE(trial.passed());
  ASSERT_THAT(bench.http.requests, SizeIs(2));
  EXPECT_THAT(bench.http.requests[1].url, HasSubstr("editMessageText"));
  EXPECT_EQ(json::parse(bench.http.requests[1].body)["message_id"], 77);
}

TEST_F(TriedActions, WithoutADrillThePersonHearsThatTheIncidentStaysOpen) {
  EXPECT_THAT(tried("pagerduty", kTriedPager).notes, Contains(HasSubstr("--drill")));
  answer(400);
  EXPECT_THAT(tried("pagerduty", kTriedPager).notes, IsEmpty()) << "nothing was opened";
}

TEST_F(TriedActions, NothingIsClosedThatWasNotOpened) {
  answer(400);
  const Trial trial = tried("pagerduty", kTriedPager, trial_drill());
  EXPECT_FALSE(trial.passed());
  EXPECT_FALSE(trial.worth_repeating());
  EXPECT_THAT(bench.http.requests, SizeIs(1));
}

TEST_F(TriedActions, AnIntegrationThatIsSentNoClosesIsSentNone) {
  const Trial trial =
      tried("webhook", "{url: 'https://example.com/in', send_resolved: false}", trial_drill());
  EXPECT_TRUE(trial.passed());
  EXPECT_THAT(bench.http.requests, SizeIs(1));
  EXPECT_THAT(trial.notes, Contains(HasSubstr("send_resolved is false")));
}

TEST_F(TriedActions, AFarSideThatIsBusyIsWorthAnotherTry) {
  answer(503);
  EXPECT_TRUE(tried("webhook", kTriedHook).worth_repeating());
  answer(401);
  EXPECT_FALSE(tried("webhook", kTriedHook).worth_repeating());
}

TEST_F(TriedActions, ADryRunShowsTheRequestAndSendsNothing) {
  for (const auto& [type, settings] :
       {std::pair{"webhook", kTriedHook}, std::pair{"email", "{to: [a@b.example]}"},
        std::pair{"mqtt", "{host: broker.example}"}}) {
    const Trial trial = tried(type, settings, trial_drill(true));
    EXPECT_TRUE(trial.passed()) << type;
    ASSERT_THAT(trial.steps, SizeIs(2)) << type;
    for (const TrialStep& step : trial.steps) {
      ASSERT_THAT(step.exchanges, SizeIs(1)) << type;
      EXPECT_THAT(step.exchanges[0].request_body, HasSubstr("TEST")) << type;
      EXPECT_EQ(step.exchanges[0].answer, "") << type;
    }
  }
  EXPECT_THAT(bench.http.requests, IsEmpty());
  EXPECT_THAT(bench.mailer.mails, IsEmpty());
  EXPECT_THAT(bench.mqtt.messages, IsEmpty());
}

TEST_F(TriedActions, MqttKeepsTheRoutersSessionAndRetainsNothing) {
  const Trial trial =
      tried("mqtt", "{host: broker.example, client_id: router, status_topic: t/status}");
  EXPECT_TRUE(trial.passed());
  EXPECT_EQ(bench.mqtt.options.client_id, "router-send-test");
  EXPECT_EQ(bench.mqtt.options.status_topic, "");
  ASSERT_THAT(bench.mqtt.messages, SizeIs(1));
  EXPECT_FALSE(bench.mqtt.messages[0].retain);
  EXPECT_THAT(trial.steps.at(0).exchanges.at(0).request,
              AllOf(HasSubstr("publish "), HasSubstr(" to broker.example:1883, QoS 1")));
}

TEST_F(TriedActions, ActionsOnRunsAndMetricsAreSkipped) {
  for (const std::string type : {"stop_training", "profile_training", "publish_metric"}) {
    const Trial trial = tried(type, "{}", trial_drill());
    EXPECT_NE(trial.skipped, "") << type;
    EXPECT_FALSE(trial.passed()) << type;
  }
  EXPECT_THAT(bench.commands, IsEmpty());
  EXPECT_THAT(bench.records, IsEmpty());
}

TEST_F(TriedActions, AnActionThatTheRouterWouldNotUseIsTriedAndTheNoteSaysSo) {
  const Trial trial = tried("webhook", "{url: 'https://example.com/in', shadow: true}");
  EXPECT_TRUE(trial.passed());
  EXPECT_THAT(bench.http.requests, SizeIs(1));
  EXPECT_THAT(trial.notes, Contains(HasSubstr("shadow is true")));
}

}  // namespace
}  // namespace tocsin::actions
