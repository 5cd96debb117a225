// The way of an issue as spans: their identifiers, times and relations, and what is sent of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actions/message/span_context.h"
#include "core/fields/outbox.h"
#include "core/json.h"
#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using namespace testing_support;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using testing::SizeIs;

constexpr char kGiven[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(SpanContext, ReadsTheSpecificationsExample) {
  const auto read = parse_traceparent(kGiven);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->trace, "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(read->parent, "00f067aa0ba902b7");
  EXPECT_TRUE(read->sampled);
  EXPECT_FALSE(
      parse_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00")->sampled);
  EXPECT_TRUE(parse_traceparent("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-later"));
}

TEST(SpanContext, WhatIsNoneIsNone) {
  for (const char* text : {"", "00", "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                           "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
                           "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
                           "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.more",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g",
                           "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}) {
    EXPECT_FALSE(parse_traceparent(text)) << text;
  }
}

TEST(SpanContext, AnEpisodeWithoutAContextHasATraceOfItsOwn) {
  const SpanContext one = context_of("", "key", 1);
  EXPECT_THAT(one.trace, SizeIs(32));
  EXPECT_THAT(one.parent, IsEmpty());
  EXPECT_EQ(one.trace, context_of("nonsense", "key", 1).trace);
  EXPECT_NE(one.trace, context_of("", "key", 2).trace);
  EXPECT_NE(one.trace, context_of("", "other", 1).trace);
}

core::Notification told() {
  core::Notification out = sample_notification();
  out.issues[0].issue.published_at = kStart - 900ms;
  out.issues[0].issue.evaluated_at = kStart - 500ms;
  return out;
}

core::Delivery attempt(const core::Notification& message, std::uint32_t number) {
  core::Delivery out;
  out.notification_id = message.notification_id;
  out.integration = message.integration;
  out.type = message.type;
  out.receiver = message.receiver;
  out.attempt = number;
  out.issues = core::listing_of(message).issues;
  out.stages.sent = kStart + number * 1s;
  out.stages.answered = out.stages.sent + 20ms;
  out.code = "204";
  return out;
}

TEST(AlarmSpans, AreOneTraceFromTheMeasurementToTheAnswer) {
  AlarmSpans spans;
  const auto first = spans.of(told());
  ASSERT_THAT(first, SizeIs(2));
  const Span& event = first[0];
  const Span& message = first[1];
  EXPECT_EQ(event.name, "exploding_tensor fired");
  EXPECT_THAT(event.parent, IsEmpty());
  EXPECT_EQ(event.start, kStart - 1s);
  EXPECT_EQ(event.end, kStart - 500ms);
  EXPECT_THAT(event.attributes,
              AllOf(Contains(Pair("tocsin.step", SpanValue(std::int64_t{412}))),
                    Contains(Pair("tocsin.job", SpanValue(std::string("digits"))))));
  EXPECT_EQ(message.name, "tell oncall");
  EXPECT_EQ(message.parent, event.id);
  EXPECT_EQ(message.start, kStart - 500ms);
  EXPECT_EQ(message.end, kStart);
  const auto sent = spans.of(attempt(told(), 1));
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->name, "send webhook");
  EXPECT_EQ(sent->parent, message.id);
  EXPECT_EQ(sent->end - sent->start, 20ms);
  EXPECT_THAT(sent->error, IsEmpty());
  EXPECT_EQ(event.trace, message.trace);
  EXPECT_EQ(event.trace, sent->trace);
}

TEST(AlarmSpans, GoOnWithTheTraceOfTheProducer) {
  core::Notification message = told();
  message.issues[0].issue.traceparent = kGiven;
  message.issues[0].issue.tracestate = "vendor=1";
  AlarmSpans spans;
  const auto out = spans.of(message);
  ASSERT_THAT(out, SizeIs(2));
  EXPECT_EQ(out[0].trace, "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(out[0].parent, "00f067aa0ba902b7");
  EXPECT_EQ(out[0].state, "vendor=1");
  EXPECT_EQ(spans.of(attempt(message, 1))->trace, out[0].trace);
}

TEST(AlarmSpans, WhatItsProducerDoesNotRecordIsNotRecorded) {
  core::Notification message = told();
  message.issues[0].issue.traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
  AlarmSpans spans;
  EXPECT_THAT(spans.of(message), IsEmpty());
  EXPECT_FALSE(spans.of(attempt(message, 1)));
}

TEST(AlarmSpans, ARepeatTellsNoEventAgainAndIsShort) {
  AlarmSpans spans;
  spans.of(told());
  core::Notification repeat = told();
  repeat.notification_id = "ntf_two";
  repeat.decided_at = kStart + 4h;
  const auto out = spans.of(repeat);
  ASSERT_THAT(out, SizeIs(1));
  EXPECT_EQ(out[0].start, kStart + 4h);
  EXPECT_EQ(out[0].end, kStart + 4h);
  EXPECT_EQ(out[0].parent, event_span(told().issues[0].issue.event_id));
}

TEST(AlarmSpans, FurtherIssuesOfAMessageAreLinked) {
  core::Notification message = told();
  message.issues.push_back(sample_issue("gradient/fc.bias"));
  message.issues[1].issue.event_id = "iss_second";
  message = *core::read_outbox(core::write_outbox(message));
  AlarmSpans spans;
  const auto out = spans.of(message);
  ASSERT_THAT(out, SizeIs(3));
  ASSERT_THAT(out[2].links, SizeIs(1));
  EXPECT_EQ(out[2].links[0].span, event_span("iss_second"));
  EXPECT_EQ(out[2].links[0].trace, out[1].trace);
  EXPECT_NE(out[1].trace, out[2].trace);
}

TEST(AlarmSpans, EachTryIsASpanAndAFailedOneSaysWhy) {
  AlarmSpans spans;
  const auto message = spans.of(told())[1];
  core::Delivery failed = attempt(told(), 1);
  failed.outcome = core::OutcomeClass::transient;
  failed.detail = "connection refused";
  const auto first = spans.of(failed);
  const auto second = spans.of(attempt(told(), 2));
  EXPECT_EQ(first->error, "connection refused");
  EXPECT_EQ(first->parent, message.id);
  EXPECT_EQ(second->parent, message.id);
  EXPECT_NE(first->id, second->id);
}

TEST(AlarmSpans, AnEndWithoutARequestHasNoSpan) {
  core::Delivery expired = attempt(told(), 1);
  expired.stages.sent = expired.stages.answered = {};
  expired.state = core::DeliveryState::expired;
  EXPECT_FALSE(AlarmSpans().of(expired));
}

TEST(AlarmSpans, AnAttemptWhoseMessageWasNotReadFindsTheTraceOfItsIssue) {
  AlarmSpans knowing;
  const auto message = knowing.of(told())[1];
  const auto alone = AlarmSpans().of(attempt(told(), 1));
  ASSERT_TRUE(alone);
  EXPECT_EQ(alone->trace, message.trace);
  EXPECT_EQ(alone->parent, message.id);
}

TEST(AlarmSpans, TheFarSideContinuesTheSpanOfTheMessage) {
  const std::string parent = traceparent_to(told());
  const auto context = parse_traceparent(parent);
  ASSERT_TRUE(context) << parent;
  AlarmSpans spans;
  const auto message = spans.of(told())[1];
  EXPECT_EQ(context->trace, message.trace);
  EXPECT_EQ(context->parent, message.id);
}

class SpanExport : public testing::Test {
 protected:
  void configure(const std::string& yaml) {
    config::Diagnostics diagnostics;
    const auto document = config::Document::parse(
        "tracing: " + yaml + "\n", "test.yaml", [](const std::string&) { return std::nullopt; },
        diagnostics);
    std::shared_ptr<const TracingConfig> config = no_tracing();
    document->read(diagnostics, [&](config::Reader& root) {
      root.section("tracing", "", [&](config::Reader& in) { config = read_tracing(in); });
    });
    for (const auto& item : diagnostics.items()) errors_ += to_text(item) + "\n";
    exporter_ = make_span_exporter(config, "c1", clock_, &http_);
  }
  SpanAnswer send(int status, std::string body = "{}") {
    http_.answers.push_back({HttpFailure::none, "", {status, {}, std::move(body)}});
    AlarmSpans spans;
    return exporter_->send(spans.of(told()));
  }

  ManualClock clock_;
  FakeHttpClient http_;
  std::string errors_;
  std::unique_ptr<SpanExporter> exporter_;
};

TEST_F(SpanExport, SendsToTheDefaultPathWithItsCredential) {
  configure("{url: 'http://127.0.0.1:4318', bearer_token: canary-secret}");
  EXPECT_EQ(errors_, "");
  EXPECT_EQ(send(200).taken, SpansTaken::all);
  ASSERT_THAT(http_.requests, SizeIs(1));
  EXPECT_EQ(http_.requests[0].url, "http://127.0.0.1:4318/v1/traces");
  EXPECT_THAT(http_.requests[0].headers,
              AllOf(Contains(Pair("content-encoding", "gzip")),
                    Contains(Pair("content-type", "application/json")),
                    Contains(Pair("authorization", "Bearer canary-secret"))));
}

TEST_F(SpanExport, KeepsAPathThatIsGiven) {
  configure("{url: 'http://127.0.0.1/otlp/v1/traces'}");
  send(200);
  EXPECT_EQ(http_.requests[0].url, "http://127.0.0.1/otlp/v1/traces");
}

TEST_F(SpanExport, SaysWhatIsWrongWithItsKeys) {
  configure("{url: 'ftp://collector'}");
  EXPECT_THAT(errors_, HasSubstr("test.yaml:1"));
  errors_.clear();
  configure("{url: 'http://127.0.0.1:4318', headres: {}}");
  EXPECT_THAT(errors_, HasSubstr("headers"));
}

TEST_F(SpanExport, TriesAgainOnlyWhatMayBeTakenLater) {
  configure("{url: 'http://127.0.0.1:4318'}");
  for (const int status : {429, 502, 503, 504, 401}) {
    EXPECT_EQ(send(status).taken, SpansTaken::later) << status;
  }
  for (const int status : {400, 404, 413, 500}) {
    EXPECT_EQ(send(status).taken, SpansTaken::refused) << status;
  }
}

TEST_F(SpanExport, TellsWhatWasRejected) {
  configure("{url: 'http://127.0.0.1:4318'}");
  const SpanAnswer answer =
      send(200, R"({"partialSuccess":{"rejectedSpans":"1","errorMessage":"too old"}})");
  EXPECT_EQ(answer.taken, SpansTaken::all);
  EXPECT_EQ(answer.words, "1 spans rejected: too old");
}

TEST(TracesRequest, WritesSixtyFourBitsAsTextAndIdentifiersAsHex) {
  AlarmSpans spans;
  auto out = spans.of(told());
  core::Delivery failed = attempt(told(), 1);
  failed.outcome = core::OutcomeClass::transient;
  failed.detail = "refused";
  out.push_back(*spans.of(failed));
  const std::string json = traces_request(out, "c1");
  ASSERT_TRUE(core::parse_json(json, json.size()));
  EXPECT_THAT(json, HasSubstr(R"("startTimeUnixNano":")" +
                              std::to_string(core::nanoseconds(kStart - 1s)) + "\""));
  EXPECT_THAT(json, HasSubstr(R"({"key":"tocsin.step","value":{"intValue":"412"}})"));
  EXPECT_THAT(json, HasSubstr(R"("status":{"code":2,"message":"refused"})"));
  EXPECT_THAT(json, HasSubstr(R"("kind":3)"));
  EXPECT_THAT(json, Not(HasSubstr("\"parentSpanId\":\"\"")));
}

}  // namespace
}  // namespace tocsin::actions
