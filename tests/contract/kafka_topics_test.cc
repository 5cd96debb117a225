// Topics of Kafka that are missing, an address where nobody answers, messages that nobody takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "tests/contract/transport_backends.h"
#include "tests/support/kafka_fixture.h"

namespace tocsin::tests {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

TEST(KafkaTopics, WhatIsMissingIsNamedWhenItMayNotBeCreated) {
  const auto servers = kafka_bootstrap_servers();
  ASSERT_TRUE(servers) << servers.error().message;
  core::NullLog log;
  core::NullTelemetry telemetry;
  ingest::TransportConfig cfg;
  cfg.kafka = core::ValueMap{{"bootstrap.servers", *servers}};
  ingest::TopicsConfig topics;
  topics.prefix = unique_name("t");
  topics.create = false;
  auto transport = ingest::Transport::open(cfg, topics, log, telemetry);
  ASSERT_TRUE(transport);
  const auto status = (*transport)->ensure_topics();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, core::Code::not_found);
  EXPECT_THAT(status.error().message, HasSubstr(topics.prefix + ".issues.v1"));
  EXPECT_THAT(status.error().message, HasSubstr("tocsin topics apply"));

  // Producing creates nothing either, not even where brokers would.
  auto publisher = (*transport)->publisher({});
  ASSERT_TRUE(publisher);
  auto sent = (*publisher)->publish(record("issues", "k", "v"));
  if (sent) sent = (*publisher)->flush(seconds{20});
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, core::Code::not_found) << sent.error().message;
  const auto states = (*transport)->topic_states();
  ASSERT_TRUE(states);
  for (const auto& state : *states) EXPECT_EQ(state.partitions, std::nullopt);
}

TEST(KafkaTopics, AnAddressWhereNobodyAnswersIsUnavailable) {
  core::NullLog log;
  core::NullTelemetry telemetry;
  ingest::TransportConfig cfg;
  cfg.kafka = core::ValueMap{{"bootstrap.servers", "127.0.0.1:1"}};
  auto transport = ingest::Transport::open(cfg, {}, log, telemetry);
  ASSERT_TRUE(transport);
  const auto start = Clock::now();
  const auto status = (*transport)->ping(milliseconds{500});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, core::Code::unavailable);
  EXPECT_THAT(status.error().message, HasSubstr("127.0.0.1:1"));
  EXPECT_LT(Clock::now() - start, seconds{3});
}

TEST(KafkaTopics, WhatTheConfigurationSaysOfMessagesIsFollowed) {
  core::NullLog log;
  core::NullTelemetry telemetry;
  ingest::TransportConfig cfg;
  cfg.kafka = core::ValueMap{{"bootstrap.servers", "127.0.0.1:1"},
                             {"producer", core::ValueMap{{"message.timeout.ms", "1000"}}}};
  auto transport = ingest::Transport::open(cfg, {}, log, telemetry);
  ASSERT_TRUE(transport);
  auto publisher = (*transport)->publisher({});
  ASSERT_TRUE(publisher);
  core::OutRecord record;
  record.topic = "telemetry";
  record.key = "run";
  record.value = "lost";
  ASSERT_TRUE((*publisher)->publish(record));
  const auto start = Clock::now();
  const auto status = (*publisher)->flush(seconds{8});
  ASSERT_FALSE(status);  // told of the record that nobody took, and not only that time is up
  EXPECT_LT(Clock::now() - start, seconds{6});
}

}  // namespace
}  // namespace tocsin::tests
