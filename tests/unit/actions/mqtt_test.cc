#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;
using namespace testing_support;
using core::OutcomeClass;

TEST(Mqtt, PublishesEachIssueToATopicOfItsOwn) {
  Workbench bench;
  const auto mqtt =
      bench.make("mqtt", "{topic: 'training/{cluster}/{job}/{tensor}', qos: 1, retain: true}");
  auto notification = sample_notification();
  notification.issues.push_back(sample_issue("w2"));
  const core::AttemptOutcome out = deliver(*mqtt, notification);
  EXPECT_EQ(out.outcome, OutcomeClass::delivered);
  EXPECT_EQ(out.code, "puback 0x00");
  ASSERT_EQ(bench.mqtt.messages.size(), 2u);
  const MqttMessage& first = bench.mqtt.messages[0];
  EXPECT_EQ(first.topic, "training/c1/digits/gradient%2Fconv1.weight");
  EXPECT_EQ(bench.mqtt.messages[1].topic, "training/c1/digits/w2");
  EXPECT_TRUE(first.retain);
  EXPECT_EQ(first.expiry_seconds, 86400u);
  EXPECT_THAT(first.user_properties, Contains(Pair("notification-id", "ntf_one")));
  EXPECT_THAT(first.user_properties, Contains(Pair("ce_type", "dev.tocsin.notification.v1")));
  const auto payload = nlohmann::json::parse(first.payload);
  EXPECT_EQ(payload["issues"].size(), 1u);
  EXPECT_EQ(payload["issues"][0]["labels"]["tensor"], "gradient/conv1.weight");
  EXPECT_EQ(payload["counts"]["firing"], 1);
}

TEST(Mqtt, IssuesThatShareATopicShareAMessage) {
  Workbench bench;
  const auto mqtt = bench.make("mqtt", "{topic: 'training/{job}'}");
  auto notification = sample_notification();
  notification.issues.push_back(sample_issue("w2"));
  deliver(*mqtt, notification);
  ASSERT_EQ(bench.mqtt.messages.size(), 1u);
  EXPECT_EQ(nlohmann::json::parse(bench.mqtt.messages[0].payload)["issues"].size(), 2u);
}

TEST(Mqtt, ARetainedResolveIsForgottenByTheBroker) {
  Workbench bench;
  const auto mqtt = bench.make("mqtt", "{retain: true, retained_ttl: 5m}");
  deliver(*mqtt, sample_notification("ntf_two", core::NotificationKind::close));
  EXPECT_EQ(bench.mqtt.messages[0].expiry_seconds, 300u);
}

TEST(Mqtt, HasAClassForEachReason) {
  const auto outcome = [](int reason) {
    return classify(MqttResult{MqttFailure::none, reason, ""}, 1).outcome;
  };
  EXPECT_EQ(outcome(0x00), OutcomeClass::delivered);
  EXPECT_EQ(outcome(0x10), OutcomeClass::delivered);
  EXPECT_EQ(outcome(0x87), OutcomeClass::configuration);
  EXPECT_EQ(outcome(0x90), OutcomeClass::bad_payload);
  EXPECT_EQ(outcome(0x99), OutcomeClass::bad_payload);
  EXPECT_EQ(outcome(0x97), OutcomeClass::throttled);
  for (const int reason : {0x80, 0x83, 0x89}) EXPECT_EQ(outcome(reason), OutcomeClass::transient);
  EXPECT_EQ(classify({MqttFailure::unreachable, 0, ""}, 1).outcome, OutcomeClass::transient);
  EXPECT_EQ(classify({MqttFailure::no_answer, 0, ""}, 1).outcome, OutcomeClass::unknown);
  EXPECT_EQ(classify({MqttFailure::login, 0x86, ""}, 1).outcome, OutcomeClass::configuration);
  EXPECT_EQ(classify({MqttFailure::login, 0x86, ""}, 1).code, "connack 0x86");
}

TEST(Mqtt, QosZeroIsSentAndNotConfirmed) {
  Workbench bench;
  const auto mqtt = bench.make("mqtt", "{qos: 0}");
  const core::AttemptOutcome out = deliver(*mqtt, sample_notification());
  EXPECT_EQ(out.outcome, OutcomeClass::delivered);
  EXPECT_FALSE(out.confirmed);
}

TEST(Mqtt, StopsAtTheFirstMessageThatIsNotTaken) {
  Workbench bench;
  const auto mqtt = bench.make("mqtt", "{topic: 't/{tensor}'}");
  bench.mqtt.answers = {{}, {MqttFailure::unreachable, 0, "gone"}};
  auto notification = sample_notification();
  for (const char* tensor : {"a", "b", "c"}) notification.issues.push_back(sample_issue(tensor));
  EXPECT_EQ(deliver(*mqtt, notification).outcome, OutcomeClass::transient);
  EXPECT_EQ(bench.mqtt.messages.size(), 2u);
}

TEST(Mqtt, PassesItsSettingsToTheConnection) {
  Workbench bench;
  const auto mqtt = bench.make(
      "mqtt",
      "{host: broker, port: 8883, tls: true, username: u, password: canary-pw, status_topic: a/b}");
  EXPECT_EQ(bench.mqtt.options.host, "broker");
  EXPECT_EQ(bench.mqtt.options.port, 8883u);
  EXPECT_TRUE(bench.mqtt.options.tls);
  EXPECT_EQ(bench.mqtt.options.client_id, "tocsin-h1-oncall/mqtt");
  EXPECT_EQ(*bench.mqtt.options.password(), "canary-pw");
  bench.mqtt.answers = {{MqttFailure::login, 0x86, "canary-pw is wrong"}};
  auto notification = sample_notification();
  notification.rendered = *mqtt->render(notification);
  EXPECT_EQ((notification.rendered + mqtt->execute(notification, 1, 1s).detail).find("canary"),
            std::string::npos);
}

std::string topic_for(std::string_view pattern, const std::string& value) {
  return fill_topic(pattern, [&](std::string_view) { return value; });
}

TEST(MqttTopic, DataCannotLeaveItsLevel) {
  EXPECT_EQ(topic_for("a/{x}/b", "c/d"), "a/c%2Fd/b");
  EXPECT_EQ(topic_for("{x}", "$SYS"), "%24SYS");
  EXPECT_EQ(topic_for("{x}", "a$b"), "a$b");
  EXPECT_EQ(topic_for("{{x}}", "+#%\n"), "%2B%23%25%0A");
  EXPECT_EQ(topic_for("a/{x}", ""), "a/_");
  EXPECT_EQ(topic_for("a/{x}", std::string(1, '\0')), "a/%00");
  EXPECT_EQ(topic_for("p{x}q", "ö"), "pöq");
}

TEST(MqttTopic, ProblemsAreNamed) {
  EXPECT_EQ(topic_problem("training/{cluster}/{{job}}/x"), "");
  for (const char* wrong :
       {"", "/a", "a/", "a//b", "a/+", "#", "a/{", "a/{}", "a/}", "a/{b c}", "a/{{b}", "a\n"}) {
    EXPECT_NE(topic_problem(wrong), "") << wrong;
  }
}

}  // namespace
}  // namespace tocsin::actions
