#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "actions/transport/signature.h"
#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using namespace testing_support;
using core::OutcomeClass;

std::string header(const HttpRequest& request, const std::string& name) {
  for (const auto& [key, value] : request.headers) {
    if (key == name) return value;
  }
  return "";
}

std::string settings(const std::string& more = "") {
  return "{url: 'https://example.com/hook', secret: " + std::string(kSecret) + more + "}";
}

TEST(Webhook, PassesOnWhatCameWithTheIssue) {
  Workbench bench;
  auto notification = sample_notification();
  core::Issue& issue = notification.issues[0].issue;
  issue.annotations = {{"dashboard", "https://grafana.example/d/1"}};
  issue.generator_url = "https://prometheus.example/graph?g0";
  issue.traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  issue.tracestate = "vendor=1";
  deliver(*bench.make("webhook", settings(", format: alertmanager_v4")), notification);
  deliver(*bench.make("webhook", settings()), notification);
  ASSERT_EQ(bench.http.requests.size(), 2u);
  const auto v4 = nlohmann::json::parse(bench.http.requests[0].body)["alerts"][0];
  EXPECT_EQ(v4["generatorURL"], issue.generator_url);
  EXPECT_EQ(v4["annotations"]["dashboard"], "https://grafana.example/d/1");
  EXPECT_EQ(v4["annotations"]["summary"], issue.summary);
  const auto event = nlohmann::json::parse(bench.http.requests[1].body);
  EXPECT_EQ(event["traceparent"], issue.traceparent);
  EXPECT_EQ(event["data"]["issues"][0]["annotations"]["dashboard"], "https://grafana.example/d/1");
  EXPECT_EQ(event["data"]["issues"][0]["generator_url"], issue.generator_url);
  for (const auto& request : bench.http.requests) {
    EXPECT_EQ(header(request, "traceparent"), issue.traceparent);
    EXPECT_EQ(header(request, "tracestate"), "vendor=1");
  }
}

TEST(Webhook, ATraceContextThatIsNoneIsLeftOut) {
  Workbench bench;
  auto notification = sample_notification();
  notification.issues[0].issue.traceparent = "00-1\r\nx-evil: 1";
  EXPECT_EQ(deliver(*bench.make("webhook", settings()), notification).outcome,
            OutcomeClass::delivered);
  EXPECT_EQ(header(bench.http.requests.at(0), "traceparent"), "");
}

TEST(Webhook, AStoredMessageOfBracketsIsRefusedAndNotParsed) {
  Workbench bench;
  const std::string deep =
      R"({"content_type":"a","body":"b","fields":)" + std::string(400'000, '[');
  for (const auto& [type, config] :
       {std::pair<std::string, std::string>{"webhook", settings()}, {"mqtt", "{topic: a}"}}) {
    const auto action = bench.make(type, config);
    auto notification = sample_notification();
    notification.rendered = deep;
    const auto out = action->execute(notification, 1, 1s);
    EXPECT_NE(out.outcome, OutcomeClass::delivered);
    EXPECT_THAT(out.detail, HasSubstr("deep"));
  }
}

TEST(Signature, MatchesThePublishedVector) {
  const auto key = webhook_key(kSecret);
  ASSERT_TRUE(key);
  EXPECT_EQ(*key, "0123456789abcdef0123456789abcdef");
  EXPECT_EQ(
      sign_webhook(*key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, "{\"test\": 2432232314}"),
      "v1,hK4CWvngkaAwjY1pABLuUbOIkEJjW9tAapq1no4ojG0=");
}

TEST(Signature, RefusesASecretThatIsTooShortOrNoBase64) {
  EXPECT_FALSE(webhook_key("whsec_"));
  EXPECT_FALSE(webhook_key("whsec_c2hvcnQ="));
  EXPECT_FALSE(webhook_key("whsec_!!!!MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="));
  EXPECT_TRUE(webhook_key("MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="));
}

TEST(Webhook, PostsACloudEventWithASignatureOverItsExactBytes) {
  Workbench bench;
  const auto hook = bench.make("webhook", settings());
  EXPECT_EQ(deliver(*hook, sample_notification()).outcome, OutcomeClass::delivered);

  ASSERT_EQ(bench.http.requests.size(), 1u);
  const HttpRequest& request = bench.http.requests[0];
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.url, "https://example.com/hook");
  EXPECT_EQ(header(request, "content-type"), "application/cloudevents+json; charset=UTF-8");
  EXPECT_EQ(header(request, "webhook-id"), "ntf_one");
  EXPECT_EQ(header(request, "webhook-timestamp"), "1767323045");
  EXPECT_EQ(header(request, "webhook-signature"),
            sign_webhook("0123456789abcdef0123456789abcdef", "ntf_one", 1767323045, request.body));

  const auto event = nlohmann::json::parse(request.body);
  EXPECT_EQ(event["specversion"], "1.0");
  EXPECT_EQ(event["type"], "dev.tocsin.notification.v1");
  EXPECT_EQ(event["source"], "/c1/router");
  EXPECT_EQ(event["id"], "ntf_one");
  EXPECT_EQ(event["subject"], to_text(kRun));
  EXPECT_EQ(event["data"]["status"], "firing");
  EXPECT_EQ(event["data"]["issues"][0]["step"], 412);
  EXPECT_EQ(event["data"]["issues"][0]["evidence"]["observed"]["value"], 17);
  EXPECT_EQ(event["data"]["issues"][0]["labels"]["tensor"], "gradient/conv1.weight");
}

TEST(Webhook, SendsTheSameBodyAgainAndSignsItAnew) {
  Workbench bench;
  const auto hook = bench.make("webhook", settings());
  auto notification = sample_notification();
  notification.rendered = *hook->render(notification);
  hook->execute(notification, 1, 1s);
  bench.clock.advance(90s);
  hook->execute(notification, 2, 1s);
  EXPECT_EQ(bench.http.requests[0].body, bench.http.requests[1].body);
  EXPECT_EQ(header(bench.http.requests[1], "webhook-timestamp"), "1767323135");
  EXPECT_NE(header(bench.http.requests[0], "webhook-signature"),
            header(bench.http.requests[1], "webhook-signature"));
}

TEST(Webhook, SignsWithBothSecretsDuringARotation) {
  Workbench bench;
  const std::string old = "whsec_YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXowMTIzNDU=";
  const auto hook = bench.make("webhook", settings(", previous_secret: '" + old + "'"));
  deliver(*hook, sample_notification());
  const std::string both = header(bench.http.requests[0], "webhook-signature");
  EXPECT_THAT(both, HasSubstr(" v1,"));
  EXPECT_THAT(both, HasSubstr(sign_webhook(*webhook_key(old), "ntf_one", 1767323045,
                                           bench.http.requests[0].body)));
}

TEST(Webhook, RefusesHeadersThatWouldBreakTheRequestOrTheSignature) {
  const auto errors = [](const std::string& headers) {
    return load("receivers: {a: {webhook: {url: 'https://example.com/', headers: " + headers +
                "}}}")
        .errors;
  };
  EXPECT_EQ(errors("{X-Team: nlp}"), "");
  EXPECT_THAT(errors("{X-Team: \"a\\r\\nb\"}"), HasSubstr("line break"));
  EXPECT_THAT(errors("{'a b': c}"), HasSubstr("is no header"));
  EXPECT_THAT(errors("{webhook-id: c}"), HasSubstr("set by the signature"));
}

TEST(Webhook, SpeaksAlertmanagersFormat) {
  Workbench bench;
  const auto hook = bench.make("webhook", settings(", format: alertmanager_v4"));
  deliver(*hook, sample_notification());
  const auto body = nlohmann::json::parse(bench.http.requests[0].body);
  EXPECT_EQ(body["version"], "4");
  EXPECT_EQ(body["receiver"], "oncall");
  EXPECT_EQ(body["groupLabels"]["job"], "digits");
  EXPECT_EQ(body["alerts"][0]["status"], "firing");
  EXPECT_EQ(body["alerts"][0]["endsAt"], "0001-01-01T00:00:00Z");
  EXPECT_EQ(body["alerts"][0]["fingerprint"], core::fingerprint(sample_issue().issue.labels));
}

TEST(Webhook, SaysLessWhenTheFullMessageWasRefused) {
  Workbench bench;
  const auto hook = bench.make("webhook", settings());
  auto notification = sample_notification();
  notification.minimal = true;
  deliver(*hook, notification);
  const auto issue = nlohmann::json::parse(bench.http.requests[0].body)["data"]["issues"][0];
  EXPECT_FALSE(issue.contains("evidence"));
  EXPECT_THAT(issue["summary"], HasSubstr("17 values"));
}

TEST(Webhook, SendsTheShortFormWhenTheMessageIsLargerThanAllowed) {
  Workbench bench;
  const auto hook = bench.make("webhook", settings(", max_payload: 2KB"));
  auto notification = sample_notification();
  for (int i = 0; i < 20; ++i) notification.issues.push_back(sample_issue("t" + std::to_string(i)));
  deliver(*hook, notification);
  EXPECT_LT(bench.http.requests[0].body.size(), 2000u);
  EXPECT_THAT(bench.http.requests[0].body, HasSubstr("\"issues\":[{"));
}

TEST(Webhook, NoSecretAppearsInAnythingItReturnsOrStores) {
  Workbench bench;
  const std::string token = "canary-token-7f3a";
  const std::string path = "/hook/canary-path-91bd";
  const auto hook =
      bench.make("webhook", "{url: 'https://example.com" + path + "', bearer_token: " + token +
                                ", secret: " + kSecret + "}");
  auto notification = sample_notification();
  notification.rendered = *hook->render(notification);
  std::string everything = notification.rendered;
  // A receiver that echoes all it was sent, and a library that names the URL in its errors.
  const std::string echo = "bad: https://example.com" + path + " Bearer " + token + " " + kSecret +
                           " 0123456789abcdef0123456789abcdef";
  for (const int status : {200, 400, 401, 410, 429, 500}) {
    bench.http.answers.push_back({HttpFailure::none, "", {status, {}, echo}});
  }
  for (const HttpFailure failure : {HttpFailure::unreachable, HttpFailure::no_answer,
                                    HttpFailure::certificate, HttpFailure::blocked}) {
    bench.http.answers.push_back({failure, echo, {}});
  }
  while (!bench.http.answers.empty()) {
    const core::AttemptOutcome out = hook->execute(notification, 1, 1s);
    everything += out.code + out.detail;
    for (const auto& [name, value] : out.handles) everything += name + value;
  }
  EXPECT_THAT(everything, HasSubstr("<redacted>"));
  EXPECT_THAT(everything, Not(HasSubstr("canary")));
  EXPECT_THAT(everything, Not(HasSubstr("MDEyMzQ1")));
  EXPECT_THAT(everything, Not(HasSubstr("0123456789abcdef")));
}

TEST(Webhook, AMissingSecretFileIsAConfigurationErrorAndASecretThatAppearsIsUsed) {
  Workbench bench;
  const std::string path = ::testing::TempDir() + "tocsin-webhook-secret";
  std::remove(path.c_str());
  const auto hook =
      bench.make("webhook", "{url: 'https://example.com/hook', secret_file: '" + path + "'}");
  const core::AttemptOutcome out = deliver(*hook, sample_notification());
  EXPECT_EQ(out.outcome, OutcomeClass::configuration);
  EXPECT_TRUE(bench.http.requests.empty());
  std::ofstream(path) << kSecret << "\n";
  EXPECT_EQ(deliver(*hook, sample_notification()).outcome, OutcomeClass::delivered);
  EXPECT_THAT(header(bench.http.requests.at(0), "webhook-signature"), HasSubstr("v1,"));
  std::remove(path.c_str());
}

struct StatusCase {
  int status;
  OutcomeClass outcome;
};

class HttpStatus : public ::testing::TestWithParam<StatusCase> {};

TEST_P(HttpStatus, HasItsClass) {
  const HttpResult result{HttpFailure::none, "", {GetParam().status, {}, "words"}};
  const core::AttemptOutcome out = classify(result, kStart);
  EXPECT_EQ(out.outcome, GetParam().outcome) << GetParam().status;
  EXPECT_EQ(out.code, std::to_string(GetParam().status));
}

INSTANTIATE_TEST_SUITE_P(
    Table, HttpStatus,
    ::testing::Values(
        StatusCase{200, OutcomeClass::delivered}, StatusCase{204, OutcomeClass::delivered},
        StatusCase{302, OutcomeClass::bad_payload}, StatusCase{400, OutcomeClass::bad_payload},
        StatusCase{401, OutcomeClass::configuration}, StatusCase{403, OutcomeClass::configuration},
        StatusCase{404, OutcomeClass::configuration}, StatusCase{408, OutcomeClass::transient},
        StatusCase{410, OutcomeClass::gone}, StatusCase{413, OutcomeClass::bad_payload},
        StatusCase{422, OutcomeClass::bad_payload}, StatusCase{425, OutcomeClass::transient},
        StatusCase{429, OutcomeClass::throttled}, StatusCase{500, OutcomeClass::transient},
        StatusCase{501, OutcomeClass::bad_payload}, StatusCase{503, OutcomeClass::transient},
        StatusCase{505, OutcomeClass::bad_payload}, StatusCase{507, OutcomeClass::transient},
        StatusCase{506, OutcomeClass::transient}, StatusCase{511, OutcomeClass::transient},
        StatusCase{599, OutcomeClass::transient}, StatusCase{418, OutcomeClass::bad_payload},
        StatusCase{520, OutcomeClass::transient}, StatusCase{529, OutcomeClass::transient}));

TEST(HttpOutcome, RetryAfterMakesABusyServerAThrottle) {
  const HttpResult busy{HttpFailure::none, "", {503, {{"retry-after", "120"}}, ""}};
  EXPECT_EQ(classify(busy, kStart).outcome, OutcomeClass::throttled);
  EXPECT_EQ(classify(busy, kStart).retry_after, 120s);
}

TEST(HttpOutcome, ReadsRetryAfterAsSecondsAndAsADate) {
  EXPECT_EQ(parse_retry_after("7", kStart), 7s);
  EXPECT_EQ(parse_retry_after(" 0 ", kStart), 0s);
  // kStart is 03:04:05.678
  EXPECT_EQ(parse_retry_after("Fri, 02 Jan 2026 03:05:05 GMT", kStart), 59322ms);
  EXPECT_EQ(parse_retry_after("Thu, 01 Jan 2026 00:00:00 GMT", kStart), 0s);
  for (const char* wrong :
       {"", "-1", "1.5", "soon", "Fri, 02 Foo 2026 03:05:05 GMT", "Fri, 02 Jan 2026 03:05:05 CET",
        "Fri, 31 Feb 2026 03:05:05 GMT", "Fri, 02 Jan 2026 25:05:05 GMT", "GMT", ", , , , , GMT",
        "- - - - -", "0x10", "7s", "\xff"}) {
    EXPECT_EQ(parse_retry_after(wrong, kStart), std::nullopt) << wrong;
  }
}

TEST(HttpOutcome, ReadsAllThreeFormsOfADate) {
  for (const char* date : {"Fri, 02 Jan 2026 03:05:05 GMT", "Friday, 02-Jan-26 03:05:05 GMT",
                           "Fri Jan  2 03:05:05 2026", " Fri, 02 Jan 2026 03:05:05 GMT\t"}) {
    EXPECT_EQ(parse_retry_after(date, kStart), 59322ms) << date;
  }
  // Two digits that would lie more than 50 years ahead are of the past century.
  EXPECT_EQ(parse_retry_after("Sunday, 06-Nov-94 08:49:37 GMT", kStart), 0s);
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", kStart), 0s);
  EXPECT_EQ(parse_retry_after("Sun Nov  6 08:49:37 1994", kStart), 0s);
}

TEST(HttpOutcome, NoRetryAfterIsLongerThanAnHour) {
  for (const char* far : {"3601", "4294967296", "99999999999999999999",
                          "Fri, 02 Jan 2099 03:05:05 GMT", "Friday, 02-Jan-70 03:05:05 GMT"}) {
    EXPECT_EQ(parse_retry_after(far, kStart), 1h) << far;
  }
}

TEST(HttpOutcome, EveryAnswerThatSaysWhenIsHeard) {
  for (const int status : {400, 408, 413, 429, 500, 502, 503, 504}) {
    const HttpResult result{HttpFailure::none, "", {status, {{"retry-after", "9"}}, ""}};
    EXPECT_EQ(classify(result, kStart).retry_after, 9s) << status;
  }
  // 0 and the past ask for nothing: a server that is down is not merely busy.
  for (const char* nothing : {"0", "Thu, 01 Jan 2026 00:00:00 GMT"}) {
    const HttpResult down{HttpFailure::none, "", {503, {{"retry-after", nothing}}, ""}};
    EXPECT_EQ(classify(down, kStart).outcome, OutcomeClass::transient);
  }
}

TEST(HttpOutcome, WhatMayHaveArrivedIsUnknownAndWhatCannotIsTransient) {
  EXPECT_EQ(classify({HttpFailure::no_answer, "", {}}, kStart).outcome, OutcomeClass::unknown);
  EXPECT_EQ(classify({HttpFailure::unreachable, "", {}}, kStart).outcome, OutcomeClass::transient);
  EXPECT_EQ(classify({HttpFailure::certificate, "", {}}, kStart).outcome,
            OutcomeClass::configuration);
  EXPECT_EQ(classify({HttpFailure::blocked, "", {}}, kStart).outcome, OutcomeClass::configuration);
}

}  // namespace
}  // namespace tocsin::actions
