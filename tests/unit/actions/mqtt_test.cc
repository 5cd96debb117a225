#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "actions/message/rendered.h"
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

core::Notification of_tensors(std::initializer_list<const char*> tensors) {
  auto out = sample_notification();
  out.issues.clear();
  for (const char* tensor : tensors) out.issues.push_back(sample_issue(tensor));
  return out;
}

TEST(Mqtt, OneMessageThatIsNotTakenKeepsBackNoOtherAndOnlyItIsSentAgain) {
  Workbench bench;
  const auto mqtt = bench.make("mqtt", "{topic: 't/{tensor}'}");
  bench.mqtt.answers = {{}, {MqttFailure::unreachable, 0, "gone"}, {}};
  const auto notification = of_tensors({"a", "b", "c"});
  const core::AttemptOutcome out = deliver(*mqtt, notification);
  EXPECT_EQ(out.outcome, OutcomeClass::transient);
  EXPECT_THAT(out.detail, HasSubstr("1 of 3 topics not taken, the first is t/b: gone"));
  EXPECT_EQ(bench.mqtt.messages.size(), 3u);
  EXPECT_EQ(deliver(*mqtt, notification).outcome, OutcomeClass::delivered);
  ASSERT_EQ(bench.mqtt.messages.size(), 4u);
  EXPECT_EQ(bench.mqtt.messages[3].topic, "t/b");
}

TEST(Mqtt, WhatMayBeTakenLaterGoesBeforeWhatNeverWill) {
  Workbench bench;
  const auto mqtt = bench.make("mqtt", "{topic: 't/{tensor}'}");
  bench.mqtt.answers = {{MqttFailure::bad_message, 0, "bad"}, {MqttFailure::unreachable, 0, ""}};
  EXPECT_EQ(deliver(*mqtt, of_tensors({"a", "b"})).outcome, OutcomeClass::transient);
}

TEST(Mqtt, ALargeMessageGoesInShortFormAndTheSmallOnesStayAsTheyWere) {
  Workbench bench;
  bench.mqtt.limit = 4000;
  const auto mqtt = bench.make("mqtt", "{topic: 't/{tensor}', version: '3.1.1'}");
  auto notification = of_tensors({"large", "small"});
  notification.issues[0].issue.description = std::string(8000, 'd');
  EXPECT_EQ(deliver(*mqtt, notification).outcome, OutcomeClass::bad_payload);
  notification.minimal = true;  // as the lanes send it once more
  EXPECT_EQ(deliver(*mqtt, notification).outcome, OutcomeClass::delivered);
  ASSERT_EQ(bench.mqtt.messages.size(), 3u);
  EXPECT_EQ(bench.mqtt.messages[2].topic, "t/large");
  EXPECT_TRUE(bench.mqtt.messages[2].smallest);
  EXPECT_LT(bench.mqtt.messages[2].payload.size(), 4000u);
}

TEST(Mqtt, ReadsTheStoredFormOfAnEarlierVersion) {
  Workbench bench;
  const auto mqtt = bench.make("mqtt", "{}");
  auto notification = sample_notification();
  notification.rendered = stored(
      {"application/json", R"([{"topic":"t/a","payload":"{}","firing":true,"subject":"u"}])", {}});
  EXPECT_EQ(mqtt->execute(notification, 1, 1s).outcome, OutcomeClass::delivered);
  EXPECT_EQ(bench.mqtt.messages.at(0).topic, "t/a");
  EXPECT_EQ(bench.mqtt.messages.at(0).payload, "{}");
}

TEST(Mqtt, AStoredMessageThatIsDamagedIsRefusedAndNothingElse) {
  Workbench bench;
  const auto mqtt = bench.make("mqtt", "{}");
  auto notification = sample_notification();
  const std::string whole = *mqtt->render(notification);
  for (std::size_t cut = 0; cut < whole.size(); cut += 7) {
    notification.rendered = whole.substr(0, cut);
    (void)mqtt->execute(notification, 1, 1s);
  }
  for (const char* body : {"[1]", "[{\"topic\":1}]", "{}", "\"bytes\"\n", "{\"bytes\":99}\nx\n"}) {
    notification.rendered = stored({"application/x-tocsin-topics", body, {}});
    EXPECT_EQ(mqtt->execute(notification, 1, 1s).outcome, OutcomeClass::bad_payload) << body;
  }
}

std::string client_id(const std::string& cluster, const std::string& outbox,
                      const std::string& settings) {
  Workbench bench;
  bench.environment.cluster = cluster;
  bench.environment.outbox = outbox;
  (void)bench.make("mqtt", settings);
  return bench.mqtt.options.client_id;
}

TEST(Mqtt, ClientIdsOfTwoRoutersOrIntegrationsDiffer) {
  const std::string one = client_id("c1", "h1:/a", "{}");
  EXPECT_THAT(one, HasSubstr("tocsin-oncall-mqtt-"));
  EXPECT_LE(one.size(), 65u);
  EXPECT_EQ(client_id("c1", "h1:/a", "{}"), one) << "the leader takes the session over";
  EXPECT_NE(client_id("c1", "h1:/b", "{}"), one) << "another journal on this machine";
  EXPECT_NE(client_id("c2", "h1:/a", "{}"), one);
  EXPECT_NE(client_id("c1", "h1:/a", "{id: 'oncall-mqtt'}"), one);
  EXPECT_EQ(client_id("c1", "h1:/a", "{client_id: mine}"), "mine");
}

TEST(Mqtt, TwoIntegrationsWithOneClientIdAtOneBrokerAreRefused) {
  const std::string two = "a: {mqtt: {client_id: x, host: h}}, b: {mqtt: {client_id: x, host: ";
  EXPECT_THAT(load("receivers: {" + two + "h}}}\n").errors,
              HasSubstr("MQTT client id \"x\" at h:1883 is used twice"));
  EXPECT_EQ(load("receivers: {" + two + "other}}}\n").errors, "");
}

TEST(Mqtt, ConnectsOnlyWhereThisProcessDelivers) {
  Workbench bench;
  bool leads = false;
  bench.environment.delivers = [&leads] { return leads; };
  (void)bench.make("mqtt", "{}");
  EXPECT_FALSE(bench.mqtt.options.wanted());
  leads = true;
  EXPECT_TRUE(bench.mqtt.options.wanted());
}

TEST(Mqtt, PassesItsSettingsToTheConnection) {
  Workbench bench;
  const auto mqtt = bench.make(
      "mqtt",
      "{host: broker, port: 8883, tls: true, username: u, password: canary-pw, status_topic: a/b}");
  EXPECT_EQ(bench.mqtt.options.host, "broker");
  EXPECT_EQ(bench.mqtt.options.port, 8883u);
  EXPECT_TRUE(bench.mqtt.options.tls);
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

TEST(MqttTopic, WhatATopicMayNotHaveIsWrittenAsItsBytes) {
  EXPECT_EQ(topic_for("{x}", "run \xC2\x93v2\xC2\x94"), "run %C2%93v2%C2%94");
  EXPECT_EQ(topic_for("{x}",
                      "a\xC2\x85"
                      "b"),
            "a%C2%85b");
  EXPECT_EQ(topic_for("{x}", "a\x7F"), "a%7F");
  EXPECT_EQ(topic_for("{x}", "a\xEF\xBF\xBF"), "a%EF%BF%BF");       // U+FFFF
  EXPECT_EQ(topic_for("{x}", "a\xEF\xB7\x90"), "a%EF%B7%90");       // U+FDD0
  EXPECT_EQ(topic_for("{x}", "\xF0\x9F\xBF\xBE"), "%F0%9F%BF%BE");  // U+1FFFE
  EXPECT_EQ(topic_for("{x}", "\xF4\x8F\xBF\xBF"), "%F4%8F%BF%BF");  // U+10FFFF
  EXPECT_EQ(topic_for("{x}",
                      "gr\xC3\xB6\xC3\x9F"
                      "e \xF0\x9F\x9A\x80"),
            "gr\xC3\xB6\xC3\x9F"
            "e \xF0\x9F\x9A\x80");
  EXPECT_EQ(topic_for("{x}", "a\xFF\xC2"), "a%FF%C2") << "no UTF-8";
  EXPECT_EQ(topic_for("{x}", "\xED\xA0\x80z"), "%ED%A0%80z") << "a surrogate";
}

TEST(MqttTopic, DifferentValuesMakeDifferentLevels) {
  std::set<std::string> seen;
  const std::vector<std::string> values{
      "",     "_",    "%5F",      "%",      "%25",  "/",   "%2F",
      "$a",   "%24a", "a",        "A",      " ",    "+",   "#",
      "\x01", "%01",  "\xC2\x85", "%C2%85", "\xFF", "%FF", std::string(1, '\0'),
      "%00"};
  for (const std::string& value : values) {
    EXPECT_TRUE(seen.insert(topic_for("t/{x}", value)).second) << value;
  }
}

TEST(MqttTopic, ATopicThatWouldBeTooLongIsCutAndStaysItsOwn) {
  const std::string pattern = "t/{a}/{b}/{c}/{d}/{e}/{f}/{g}";
  const std::string one = topic_for(pattern, std::string(5000, '\x02') + "1");
  const std::string other = topic_for(pattern, std::string(5000, '\x02') + "2");
  EXPECT_LE(one.size(), kMaxTopicBytes);
  EXPECT_NE(one, other);
  EXPECT_EQ(one.find("%/"), std::string::npos);
  EXPECT_EQ(topic_for("t/{x}", std::string(10'000, 'a')).size(), 10'002u)
      << "what fits stays whole";
}

TEST(MqttTopic, ProblemsAreNamed) {
  EXPECT_EQ(topic_problem("training/{cluster}/{{job}}/x"), "");
  for (const char* wrong : {"", "/a", "a/", "a//b", "a/+", "#", "a/{", "a/{}", "a/}", "a/{b c}",
                            "a/{{b}", "a\n", "a\xC2\x85", "a\xEF\xBF\xBE", "a\xFF"}) {
    EXPECT_NE(topic_problem(wrong), "") << wrong;
  }
}

}  // namespace
}  // namespace tocsin::actions
