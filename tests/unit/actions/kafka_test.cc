#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using namespace testing_support;
using nlohmann::json;

struct TopicBench : Workbench {
  TopicBench() {
    environment.try_record = [this](const core::OutRecord& record) {
      tried.push_back(record);
      return answer;
    };
  }
  std::vector<core::OutRecord> tried;
  core::Status answer;
};

TEST(KafkaAction, TheRecordIsWrittenWithTheDeliveryAndNotBefore) {
  TopicBench bench;
  auto notification = sample_notification();
  notification.group_hash = "abc123";
  const auto out = deliver(*bench.make("kafka", "{topic: ml.alarms}"), notification);
  EXPECT_EQ(out.outcome, core::OutcomeClass::delivered);
  EXPECT_TRUE(out.confirmed);
  ASSERT_EQ(out.records.size(), 1u);
  EXPECT_THAT(bench.records, IsEmpty()) << "nothing is published beside the transaction";
  const core::OutRecord& record = out.records[0];
  EXPECT_EQ(record.topic, "/ml.alarms");
  EXPECT_EQ(record.key, "abc123");
  EXPECT_THAT(record.headers,
              Contains(Pair("content-type", "application/cloudevents+json; charset=UTF-8")));
  const json event = json::parse(*record.value);
  EXPECT_EQ(event["specversion"], "1.0");
  EXPECT_EQ(event["id"], "ntf_one");
  EXPECT_EQ(event["data"]["status"], "firing");
  ASSERT_EQ(bench.tried.size(), 1u);
  EXPECT_EQ(bench.tried[0].value, record.value) << "what was tried is what is written";
}

TEST(KafkaAction, BinaryModeHasAttributesAsHeaders) {
  TopicBench bench;
  const auto action = bench.make(
      "kafka", "{topic: t, format: binary, key: '{{job}}/{{rule}}', headers: {team: nlp}}");
  const auto out = deliver(*action, sample_notification());
  ASSERT_EQ(out.records.size(), 1u);
  const core::OutRecord& record = out.records[0];
  EXPECT_EQ(record.key, "digits/exploding_tensor");
  EXPECT_THAT(record.headers, Contains(Pair("ce_id", "ntf_one")));
  EXPECT_THAT(record.headers, Contains(Pair("ce_type", "dev.tocsin.notification.v1")));
  EXPECT_THAT(record.headers, Contains(Pair("content-type", "application/json")));
  EXPECT_THAT(record.headers, Contains(Pair("team", "nlp")));
  const json data = json::parse(*record.value);
  EXPECT_EQ(data["status"], "firing");
  EXPECT_FALSE(data.contains("specversion"));
}

TEST(KafkaAction, WhatTheTopicDoesNotTakeIsNotWritten) {
  const std::vector<std::pair<core::Code, core::OutcomeClass>> cases{
      {core::Code::unavailable, core::OutcomeClass::transient},
      {core::Code::not_found, core::OutcomeClass::configuration},
      {core::Code::permission_denied, core::OutcomeClass::configuration},
      {core::Code::invalid_argument, core::OutcomeClass::bad_payload}};
  for (const auto& [code, outcome] : cases) {
    TopicBench bench;
    bench.answer = core::Error{code, "topic t"};
    const auto out = deliver(*bench.make("kafka", "{topic: t}"), sample_notification());
    EXPECT_EQ(out.outcome, outcome) << to_string(code);
    EXPECT_THAT(out.records, IsEmpty());
  }
}

TEST(KafkaAction, SaysWhatItsKeysTake) {
  const auto errors = [](const std::string& settings) {
    return load("receivers: {s: {kafka: " + settings + "}}").errors;
  };
  EXPECT_EQ(errors("{topic: a.b_c-D}"), "");
  EXPECT_THAT(errors("{topic: 'a/b'}"), HasSubstr("expected up to 249 letters"));
  EXPECT_THAT(errors("{topic: t, key: '{{jobb}}'}"), HasSubstr("unknown name jobb"));
  EXPECT_THAT(errors("{topic: t, headers: {ce_id: x}}"), HasSubstr("the event's own"));
  EXPECT_THAT(errors("{topic: t, format: json}"), HasSubstr("structured"));
  Workbench journal;
  EXPECT_THROW(journal.make("kafka", "{topic: t}"), std::runtime_error);
}

}  // namespace
}  // namespace tocsin::actions
