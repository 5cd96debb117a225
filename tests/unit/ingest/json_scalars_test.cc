// JSON scalars as frames, what is refused and why, and the way into the dead letters.
#include "ingest/wire/json_scalars.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "tests/support/record_fixture.h"
#include "tests/unit/ingest/frame_fixture.h"

namespace tocsin::ingest {
namespace {

using namespace fixture;
using testing::HasSubstr;

constexpr std::int64_t kRecordTime = 1'700'000'000'000'000'000;

/// What came out, copied: frames live only inside the handler.
struct Collected {
  std::vector<core::FrameHeader> headers;
  std::vector<core::ScalarRow> rows;
  std::map<std::string, core::NameAttrs> attrs;
  std::map<std::string, core::Role> roles;
};

struct Outcome {
  std::optional<DecodeFailure> failure;
  Collected got;
};

void collect(const core::FrameView& frame, const core::FrameBody& body, Collected& out) {
  out.headers.push_back(frame.header());
  if (const auto* names = std::get_if<core::Dictionary>(&body)) {
    EXPECT_EQ(names->size(), frame.rows());
    for (const core::NamedEntry& entry : *names) {
      EXPECT_EQ(entry.hash, core::name_hash(entry.name));
      out.attrs[std::string(entry.name)] = entry.attrs;
      out.roles[std::string(entry.name)] = entry.role;
    }
  }
  if (frame.header().kind != core::FrameKind::scalar) return;
  for (std::size_t i = 0; i < frame.rows(); ++i) out.rows.push_back(frame.scalar(i));
}

Outcome decode(std::string_view json) {
  Outcome out;
  JsonScalarDecoder decoder;
  out.failure = decoder.decode(json, kRecordTime,
                               [&](const core::FrameView& frame, const core::FrameBody& body) {
                                 collect(frame, body, out.got);
                               });
  return out;
}

std::string refusal(std::string_view json) {
  const Outcome outcome = decode(json);
  EXPECT_TRUE(outcome.got.headers.empty()) << "nothing of a refused record is handed on";
  if (!outcome.failure) return "accepted";
  return std::string(to_string(outcome.failure->code)) + " " + outcome.failure->detail;
}

TEST(JsonScalars, FourKeysAreEnough) {
  const auto [failure, got] = decode(R"({"run":"exploding","name":"loss","value":0.31,"step":12})");
  ASSERT_FALSE(failure);
  ASSERT_EQ(got.headers.size(), 2u);
  EXPECT_EQ(got.headers[0].kind, core::FrameKind::dictionary);
  const core::FrameHeader& header = got.headers[1];
  EXPECT_EQ(header.kind, core::FrameKind::scalar);
  EXPECT_EQ(header.run, core::run_uid_for("", "exploding"));
  EXPECT_EQ(header.attempt, 1u);
  EXPECT_EQ(header.rank, 0u);
  EXPECT_EQ(header.mode, core::Mode::train);
  EXPECT_EQ(header.worker, core::name_hash("worker_0"));
  EXPECT_EQ(header.step, 12);
  EXPECT_EQ(header.time, kRecordTime);
  EXPECT_EQ(header.flags, core::frame_flag::kUnsequenced);
  ASSERT_EQ(got.rows.size(), 1u);
  EXPECT_EQ(got.rows[0].name, core::name_hash("loss"));
  EXPECT_EQ(got.rows[0].value, 0.31);
  EXPECT_EQ(got.rows[0].global_step, 12);
  EXPECT_EQ(core::meta::role(got.rows[0].meta), core::Role::loss);
  EXPECT_EQ(core::meta::dtype(got.rows[0].meta), core::Dtype::f64);
}

TEST(JsonScalars, EveryOptionalKeyIsHeard) {
  const auto [failure, got] = decode(
      R"({"run":"exploding","job":"digits","name":"accuracy","value":1,"step":7,"global_step":9,
          "attempt":3,"worker":"eval_0","rank":2,"world_size":4,"mode":"eval",
          "time":"2026-01-02T03:04:05.678Z","role":"metric","direction":"max","unit":"1",
          "labels":{"team":"nlp"},"somebody":"elses"})");
  ASSERT_FALSE(failure);
  const core::FrameHeader& header = got.headers.at(1);
  EXPECT_EQ(header.run, run()) << "job and run name give the published uid";
  EXPECT_EQ(header.attempt, 3u);
  EXPECT_EQ(header.rank, 2u);
  EXPECT_EQ(header.world_size, 4u);
  EXPECT_EQ(header.mode, core::Mode::eval);
  EXPECT_EQ(header.global_step, 9);
  EXPECT_EQ(got.rows.at(0).time, 1767323045678000000);
  core::NameAttrs of_worker;
  of_worker.job = "digits";
  of_worker.labels = {{"team", "nlp"}};
  EXPECT_EQ(got.attrs.at("eval_0"), of_worker);
  core::NameAttrs of_metric;
  of_metric.direction = core::Direction::max;
  of_metric.unit = "1";
  EXPECT_EQ(got.attrs.at("accuracy"), of_metric);
  EXPECT_EQ(got.roles.at("accuracy"), core::Role::metric);
}

TEST(JsonScalars, AUidIsTakenAsItIs) {
  const auto [failure, got] =
      decode(R"({"run":"4E3046D4-8c1f-5278-82e3-ea3595bc5999","name":"x","value":1,"step":0})");
  ASSERT_FALSE(failure);
  EXPECT_EQ(got.headers.at(1).run, run());
}

TEST(JsonScalars, NumbersThatAreNotFiniteComeAsText) {
  const auto [failure, got] = decode(
      R"([{"run":"r","name":"a","value":"NaN","step":1},{"run":"r","name":"b","value":"Infinity","step":1},
          {"run":"r","name":"c","value":"-Infinity","step":1},{"run":"r","name":"d","value":-3,"step":1.0}])");
  ASSERT_FALSE(failure) << failure->detail;
  ASSERT_EQ(got.rows.size(), 4u);
  EXPECT_TRUE(std::isnan(got.rows[0].value));
  EXPECT_EQ(got.rows[1].value, HUGE_VAL);
  EXPECT_EQ(got.rows[2].value, -HUGE_VAL);
  EXPECT_EQ(got.rows[3].value, -3.0);
}

TEST(JsonScalars, AFrameNeverMixesRunsWorkersModesOrLabels) {
  const auto [failure, got] = decode(
      R"([{"run":"r","name":"a","value":1,"step":1},{"run":"r","name":"a","value":2,"step":2},
          {"run":"r","name":"a","value":3,"step":2,"mode":"eval"},
          {"run":"r","name":"a","value":4,"step":3,"rank":1,"worker":"worker_1"},
          {"run":"q","name":"a","value":5,"step":3,"rank":1,"worker":"worker_1"}])");
  ASSERT_FALSE(failure);
  ASSERT_EQ(got.headers.size(), 8u) << "four stretches, each a dictionary and its scalars";
  EXPECT_EQ(got.headers[1].row_count, 2u);
  EXPECT_EQ(got.headers[1].step, 2);
  EXPECT_EQ(got.headers[3].mode, core::Mode::eval);
  EXPECT_EQ(got.headers[5].rank, 1u);
  EXPECT_EQ(got.headers[7].run, core::run_uid_for("", "q"));
  EXPECT_EQ(got.rows.size(), 5u);
}

TEST(JsonScalars, LongArraysAreSplitIntoFramesOf500Rows) {
  std::string json = "[";
  for (int i = 0; i < 1201; ++i) {
    json += R"({"run":"r","name":"a","value":1,"step":)" + std::to_string(i) + "},";
  }
  json.back() = ']';
  const auto [failure, got] = decode(json);
  ASSERT_FALSE(failure);
  ASSERT_EQ(got.headers.size(), 6u);
  EXPECT_EQ(got.headers[1].row_count, 500u);
  EXPECT_EQ(got.headers[5].row_count, 201u);
  EXPECT_EQ(got.rows.back().step, 1200);
}

TEST(JsonScalars, LongNamesAreSplitBeforeADictionaryIsTooLarge) {
  std::string json = "[";
  for (int i = 0; i < 200; ++i) {
    const std::string name = std::string(4000, 'n') + std::to_string(i);
    json += R"({"run":"r","value":1,"step":1,"name":")" + name + "\"},";
  }
  json.back() = ']';
  const auto [failure, got] = decode(json);
  ASSERT_FALSE(failure);
  EXPECT_EQ(got.rows.size(), 200u);
  for (const core::FrameHeader& header : got.headers) EXPECT_LT(header.body_length, 300'000u);
}

TEST(JsonScalars, AnEmptyArrayIsNothing) {
  const auto [failure, got] = decode("[]");
  EXPECT_FALSE(failure);
  EXPECT_TRUE(got.headers.empty());
}

TEST(JsonScalars, WhatIsMissingIsNamed) {
  EXPECT_EQ(refusal(R"({"name":"a","value":1,"step":1})"), "bad_json run is missing");
  EXPECT_EQ(refusal(R"({"run":"r","value":1,"step":1})"), "bad_json name is missing");
  EXPECT_EQ(refusal(R"({"run":"r","name":"a","step":1})"), "bad_json value is missing");
  EXPECT_EQ(refusal(R"({"run":"r","name":"a","value":1})"), "bad_json step is missing");
  EXPECT_EQ(refusal(R"({"run":"","name":"a","value":1,"step":1})"),
            "bad_json run: expected a text that is not empty");
}

TEST(JsonScalars, AWrongTypeRefusesTheWholeRecord) {
  const std::map<std::string, std::string> wrong{
      {R"("value":true)", "value: expected a number"},
      {R"("value":"0.3")", "value: expected a number"},
      {R"("step":1.5)", "step: expected a whole number"},
      {R"("step":-1)", "step: expected a whole number from 0"},
      {R"("step":"1")", "step: expected a whole number"},
      {R"("step":1e300)", "step: expected a whole number"},
      {R"("attempt":0)", "attempt: expected a whole number from 1"},
      {R"("rank":4294967296)", "rank: expected a whole number from 0 to 4294967295"},
      {R"("mode":"training")", "mode: expected global, train, eval or predict"},
      {R"("role":"los")", "role: expected other, weight, bias"},
      {R"("direction":"up")", "direction: expected min or max"},
      {R"("time":"yesterday")", "time: expected an RFC 3339 time"},
      {R"("time":"9999-12-31T00:00:00Z")", "time: expected an RFC 3339 time"},
      {R"("time":1767323045)", "time: expected an RFC 3339 time"},
      {R"("labels":{"a":1})", "labels: expected an object of texts"},
      {R"("worker":7)", "worker: expected a text"},
      {R"("unit":[])", "unit: expected a text"}};
  for (const auto& [field, reason] : wrong) {
    const std::string good = R"({"run":"r","name":"a","value":1,"step":1},)";
    const std::string bad = R"({"run":"r","name":"a","value":1,"step":1,)" + field + "}";
    EXPECT_THAT(refusal("[" + good + bad + "]"), HasSubstr("bad_json [1]." + reason)) << field;
  }
}

TEST(JsonScalars, WhatIsNoJsonSaysWhere) {
  EXPECT_THAT(refusal("{"), HasSubstr("bad_json not JSON: parse error at line 1, column 2"));
  EXPECT_THAT(refusal("{\"run\":\"\xff\"}"), HasSubstr("bad_json not JSON"));
  EXPECT_THAT(refusal("[1]"), HasSubstr("bad_json [0] expected an object"));
  EXPECT_THAT(refusal(R"({"run":"r","name":"a","value":1e999,"step":1})"), HasSubstr("bad_json"));
}

TEST(JsonScalars, KeysOfOneObjectAreBoundedAndMetricsOfOneRecordAreNot) {
  std::string wide = R"({"run":"r","name":"a","value":1,"step":1)";
  for (int i = 0; i < 508; ++i) wide += ",\"k" + std::to_string(i) + "\":0";
  EXPECT_FALSE(decode(wide + "}").failure);
  EXPECT_EQ(refusal(wide + R"(,"one_more":0})"), "bad_json a JSON object with more than 512 keys");
  std::string many = "[";
  for (int i = 0; i < 20'000; ++i) many += R"({"run":"r","name":"a","value":1,"step":1},)";
  many.back() = ']';
  EXPECT_EQ(decode(many).got.rows.size(), 20'000u);
}

TEST(JsonScalars, DepthAndSizeAreBounded) {
  EXPECT_THAT(refusal(std::string(100'000, '[')), HasSubstr("bad_json JSON deeper than 32 levels"));
  EXPECT_THAT(refusal("[" + std::string(core::kMaxFrameBytes, ' ') + "]"), HasSubstr("too_large"));
  EXPECT_EQ(refusal(R"({"value":1,"step":1,"name":"n","run":")" + std::string(4097, 'r') + "\"}"),
            "bad_json run: expected a text of at most 4096 bytes");
}

core::RecordView record(std::string_view value) {
  core::RecordView out;
  out.topic = "telemetry";
  out.stream = "telemetry";
  out.partition = 3;
  out.offset = 8812;
  out.timestamp = kRecordTime;
  out.key = "some key";
  out.value = bytes_of(value);
  return out;
}

std::string told_apart(std::string_view value) {
  JsonScalarDecoder decoder;
  std::string kinds;
  const auto failure = decode_telemetry(
      record(value), decoder, [&](const core::FrameView& frame, const core::FrameBody& /*body*/) {
        kinds += std::to_string(static_cast<int>(frame.header().kind)) + " ";
      });
  return failure ? std::string(to_string(failure->code)) : kinds;
}

TEST(DecodeTelemetry, TellsFramesAndJsonApartByTheFirstByte) {
  const Bytes frame = step_end_frame();
  const std::string_view text(reinterpret_cast<const char*>(frame.data()), frame.size());
  EXPECT_EQ(told_apart(text), "3 ");
  EXPECT_EQ(told_apart(R"({"run":"r","name":"a","value":1,"step":1})"), "7 2 ");
  EXPECT_EQ(told_apart(" \n[{\"run\":\"r\",\"name\":\"a\",\"value\":1,\"step\":1}]"), "7 2 ");
  EXPECT_EQ(told_apart("hello"), "not_a_frame");
  EXPECT_EQ(told_apart(""), "not_a_frame");
  EXPECT_EQ(told_apart("{}"), "bad_json");
  EXPECT_EQ(told_apart(text.substr(0, 150)), "truncated");
}

TEST(DeadLetter, CarriesTheOriginalBytesAndWhereTheyStood) {
  const auto letter =
      dead_letter(record("hello"), to_string(DecodeError::not_a_frame), "no magic", "engine");
  EXPECT_EQ(letter.topic, "dlq");
  EXPECT_EQ(letter.key, "telemetry/3");
  EXPECT_EQ(letter.value, "hello");
  EXPECT_EQ(header_of(letter, "error-code"), "not_a_frame");
  EXPECT_EQ(header_of(letter, "error-detail"), "no magic");
  EXPECT_EQ(header_of(letter, "source-topic"), "telemetry");
  EXPECT_EQ(header_of(letter, "source-partition"), "3");
  EXPECT_EQ(header_of(letter, "source-offset"), "8812");
  EXPECT_EQ(header_of(letter, "source-key"), "some key");
  EXPECT_EQ(header_of(letter, "decoder"), kDecoderVersion);
  EXPECT_EQ(header_of(letter, "component"), "engine");
}

TEST(DeadLetter, IsCutToWhatATopicTakes) {
  const std::string large(2'000'000, 'x');
  const auto letter = dead_letter(record(large), "bad_event", std::string(9999, 'd'), "router");
  EXPECT_EQ(letter.value->size(), kMaxRecordBytes);
  EXPECT_EQ(header_of(letter, "original-bytes"), "2000000");
  EXPECT_EQ(header_of(letter, "error-detail").size(), 1024u);
}

}  // namespace
}  // namespace tocsin::ingest
