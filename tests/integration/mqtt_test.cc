// MQTT against a real broker on loopback.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>

#include "tests/integration/real_bench.h"

namespace tocsin::actions {
namespace {

using ::testing::HasSubstr;
using namespace testing_support;
using core::OutcomeClass;
using nlohmann::json;
using tests::ChildProgram;

struct Broker {
  explicit Broker(int wanted = 0, const std::string& more = "")
      : program({"/usr/bin/python3", "tests/support/mosquitto.py", "--port", std::to_string(wanted),
                 "--more", more}),
        port(program.port()) {}
  ChildProgram program;
  int port;
};

struct Subscriber {
  Subscriber(int port, const std::string& topic)
      : program({"stdbuf", "-oL", "mosquitto_sub", "-h", "127.0.0.1", "-p", std::to_string(port),
                 "-V", "5", "-t", topic, "-q", "1", "-F", "%j", "-d"}) {
    program.line_with("Subscribed");
  }
  json message() { return json::parse(program.line_with("{")); }
  ChildProgram program;
};

std::string mqtt_settings(int port, const std::string& more = "") {
  return "{host: 127.0.0.1, port: " + std::to_string(port) + ", topic: 'training/{job}/{rule}'" +
         more + "}";
}

TEST(RealMqtt, IsAcknowledgedAndReachesASubscriber) {
  Broker broker;
  Subscriber subscriber(broker.port, "training/#");
  RealBench bench;
  const auto mqtt = bench.make("mqtt", mqtt_settings(broker.port));
  const core::AttemptOutcome out = deliver_within(*mqtt, sample_notification(), 10s);
  EXPECT_EQ(out.outcome, OutcomeClass::delivered) << out.detail;
  EXPECT_EQ(out.code, "puback 0x00");
  const json message = subscriber.message();
  EXPECT_EQ(message["topic"], "training/digits/exploding_tensor");
  EXPECT_EQ(message["qos"], 1);
  const json payload = message["payload"].is_string()
                           ? json::parse(message["payload"].get<std::string>())
                           : message["payload"];
  EXPECT_EQ(payload["issues"][0]["rule"], "exploding_tensor");
}

TEST(RealMqtt, SaysWhenNobodyListensAndKeepsARetainedState) {
  Broker broker;
  RealBench bench;
  const auto mqtt = bench.make("mqtt", mqtt_settings(broker.port, ", retain: true, qos: 2"));
  const core::AttemptOutcome out = deliver_within(*mqtt, sample_notification(), 10s);
  EXPECT_EQ(out.outcome, OutcomeClass::delivered) << out.detail;
  EXPECT_THAT(out.code, HasSubstr("pubcomp"));
  Subscriber late(broker.port, "training/#");
  EXPECT_EQ(late.message()["retain"], 1);
}

TEST(RealMqtt, SurvivesABrokerThatIsRestartedInTheMiddle) {
  auto broker = std::make_unique<Broker>();
  const int port = broker->port;
  RealBench bench;
  const auto mqtt = bench.make("mqtt", mqtt_settings(port));
  EXPECT_EQ(deliver_within(*mqtt, sample_notification(), 10s).outcome, OutcomeClass::delivered);
  broker.reset();
  const core::AttemptOutcome down = deliver_within(*mqtt, sample_notification("ntf_two"), 500ms);
  EXPECT_TRUE(down.outcome == OutcomeClass::transient || down.outcome == OutcomeClass::unknown);
  broker = std::make_unique<Broker>(port);
  Subscriber subscriber(port, "training/#");
  EXPECT_EQ(deliver_within(*mqtt, sample_notification("ntf_two"), 20s).outcome,
            OutcomeClass::delivered);
  EXPECT_EQ(subscriber.message()["topic"], "training/digits/exploding_tensor");
}

TEST(RealMqtt, AnnouncesItselfAndSaysGoodbye) {
  Broker broker;
  Subscriber subscriber(broker.port, "status/#");
  RealBench bench;
  {
    const auto mqtt =
        bench.make("mqtt", mqtt_settings(broker.port, ", status_topic: status/tocsin"));
    EXPECT_EQ(subscriber.message()["payload"], "online");
  }
  EXPECT_EQ(subscriber.message()["payload"], "offline");
}

TEST(RealMqtt, ABrokerThatIsNotThereIsTransientWithinTheBudget) {
  int port = 0;
  {
    Broker broker;
    port = broker.port;
  }
  RealBench bench;
  const auto mqtt = bench.make("mqtt", mqtt_settings(port));
  core::AttemptOutcome out;
  EXPECT_LT(elapsed_of([&] { out = deliver_within(*mqtt, sample_notification(), 300ms); }), 5s);
  EXPECT_EQ(out.outcome, OutcomeClass::transient);
  EXPECT_THAT(out.detail, HasSubstr("cannot connect"));
}

core::Notification large_and_small() {
  auto out = sample_notification();
  out.issues = {sample_issue("large"), sample_issue("small")};
  out.issues[0].issue.description = std::string(8000, 'd');
  return out;
}

// MQTT 3.1.1 says nothing of its limits: the broker closes the connection.
TEST(RealMqtt, TheMessageThatABrokerClosesTheConnectionOnIsFoundAndGoesInShortForm) {
  for (const char* version : {"'3.1.1'", "'5'"}) {
    Broker broker(0, "max_packet_size 4000");
    RealBench bench;
    const auto mqtt =
        bench.make("mqtt", "{host: 127.0.0.1, topic: 't/{tensor}', retain: true, port: " +
                               std::to_string(broker.port) + ", version: " + version + "}");
    auto notification = large_and_small();
    const core::AttemptOutcome full = deliver_within(*mqtt, notification, 20s);
    EXPECT_EQ(full.outcome, OutcomeClass::bad_payload) << full.detail;
    EXPECT_THAT(full.detail, HasSubstr("1 of 2 topics not taken, the first is t/large"));
    notification.minimal = true;
    EXPECT_EQ(deliver_within(*mqtt, notification, 20s).outcome, OutcomeClass::delivered);
    EXPECT_LT(elapsed_of([&] {
                auto next = large_and_small();
                next.notification_id = "ntf_next";
                EXPECT_EQ(deliver_within(*mqtt, next, 20s).outcome, OutcomeClass::bad_payload);
              }),
              2s)
        << "it has learned";
  }
}

TEST(RealMqtt, ManyTopicsAreSentAtOnce) {
  Broker broker;
  RealBench bench;
  const auto mqtt = bench.make("mqtt", "{host: 127.0.0.1, topic: 't/{tensor}', qos: 2, port: " +
                                           std::to_string(broker.port) + "}");
  auto notification = sample_notification();
  notification.issues.clear();
  for (int i = 0; i < 500; ++i) notification.issues.push_back(sample_issue(std::to_string(i)));
  const core::AttemptOutcome out = deliver_within(*mqtt, notification, 20s);
  EXPECT_EQ(out.outcome, OutcomeClass::delivered) << out.detail;
}

TEST(RealMqtt, WhoLeadsNextTakesTheSessionOverAndSaysSo) {
  Broker broker;
  Subscriber subscriber(broker.port, "status/#");
  std::atomic<int> leader{1};
  RealBench first;
  RealBench second;
  first.environment.delivers = [&leader] { return leader == 1; };
  second.environment.delivers = [&leader] { return leader == 2; };
  const std::string settings = mqtt_settings(broker.port, ", status_topic: status/tocsin");
  const auto one = first.make("mqtt", settings);
  const auto two = second.make("mqtt", settings);
  EXPECT_EQ(subscriber.message()["payload"], "online");
  EXPECT_EQ(deliver_within(*one, sample_notification(), 10s).outcome, OutcomeClass::delivered);
  EXPECT_EQ(deliver_within(*two, sample_notification("n2"), 500ms).outcome,
            OutcomeClass::transient);
  leader = 0;
  EXPECT_EQ(subscriber.message()["payload"], "offline");
  leader = 2;
  EXPECT_EQ(deliver_within(*two, sample_notification("n2"), 10s).outcome, OutcomeClass::delivered);
  EXPECT_EQ(subscriber.message()["payload"], "online");
  EXPECT_EQ(deliver_within(*one, sample_notification("n3"), 500ms).outcome,
            OutcomeClass::transient);
}

}  // namespace
}  // namespace tocsin::actions
