// publish_metric by the Pushgateway, OTLP, StatsD and CloudWatch: requests, limits, what answers mean.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "actions/transport/datagram_sender.h"
#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;
using namespace testing_support;
using core::OutcomeClass;
using nlohmann::json;

HttpResult metric_answer(int status, std::string body = "") {
  return {HttpFailure::none, "", {status, {}, std::move(body)}};
}

core::Notification of_jobs(const std::vector<std::string>& jobs, bool firing = true) {
  auto out = sample_notification(
      "ntf", firing ? core::NotificationKind::open : core::NotificationKind::close);
  const auto pattern = out.issues[0];
  out.issues.clear();
  for (const std::string& job : jobs) {
    auto issue = pattern;
    issue.issue.labels.set("job", job);
    issue.issue_key = "key of " + job;
    out.issues.push_back(issue);
  }
  return out;
}

std::string metric_errors_of(const std::string& settings) {
  return load("receivers: {a: {publish_metric: " + settings + "}}\n").errors;
}

std::string gunzip(const std::string& bytes) {
  std::string out(1 << 22, '\0');
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

// ---- Pushgateway

constexpr char kGateway[] =
    "{transport: pushgateway, url: 'https://gate.example/base/?a=1', labels: [job, rule]}";

TEST(Pushgateway, ReplacesTheGroupOfEachJobThatChanged) {
  Workbench bench;
  const auto action = bench.make("publish_metric", kGateway);
  deliver(*action, of_jobs({"digits", "a/b c"}));
  ASSERT_THAT(bench.http.requests, SizeIs(2));
  const HttpRequest& odd = bench.http.requests[1];
  EXPECT_EQ(odd.method, "PUT");
  EXPECT_EQ(odd.url, "https://gate.example/base/metrics/job@base64/YS9iIGM=/cluster/c1?a=1");
  const HttpRequest& plain = bench.http.requests[0];
  EXPECT_EQ(plain.url, "https://gate.example/base/metrics/job/digits/cluster/c1?a=1");
  EXPECT_THAT(plain.headers,
              Contains(Pair("content-type", "text/plain; version=0.0.4; charset=utf-8")));
  EXPECT_EQ(
      plain.body,
      "# HELP tocsin_issue_active 1 while an issue is firing, 0 after its resolve\n"
      "# TYPE tocsin_issue_active gauge\n"
      "tocsin_issue_active{job=\"digits\",rule=\"exploding_tensor\"} 1\n"
      "# HELP tocsin_issue_last_transition_timestamp_seconds when it last began or ended\n"
      "# TYPE tocsin_issue_last_transition_timestamp_seconds gauge\n"
      "tocsin_issue_last_transition_timestamp_seconds{job=\"digits\",rule=\"exploding_tensor\"} "
      "1767323044.678\n"
      "# HELP tocsin_issue_episodes_total how often it has begun\n"
      "# TYPE tocsin_issue_episodes_total counter\n"
      "tocsin_issue_episodes_total{job=\"digits\",rule=\"exploding_tensor\"} 1\n");
  deliver(*action, of_jobs({"digits"}, false));
  ASSERT_THAT(bench.http.requests, SizeIs(3)) << "the other group is as it was";
  EXPECT_THAT(bench.http.requests[2].body, HasSubstr("} 0\n"));
}

TEST(Pushgateway, DeletesTheGroupOfAJobAfterItsLinger) {
  Workbench bench;
  const auto action = bench.make("publish_metric", kGateway);
  deliver(*action, of_jobs({"digits"}));
  deliver(*action, of_jobs({"digits"}, false));
  bench.clock.advance(15min);
  deliver(*action, of_jobs({"other"}));
  EXPECT_THAT(bench.http.requests, SizeIs(3)) << "it lingers";
  bench.clock.advance(1s);
  bench.http.answers = {metric_answer(202), metric_answer(503), metric_answer(202)};
  EXPECT_EQ(deliver(*action, of_jobs({"third"})).outcome, OutcomeClass::transient);
  EXPECT_EQ(deliver(*action, of_jobs({"third"})).outcome, OutcomeClass::delivered);
  ASSERT_THAT(bench.http.requests, SizeIs(6));
  for (const int i : {4, 5}) {
    EXPECT_EQ(bench.http.requests[static_cast<std::size_t>(i)].method, "DELETE");
    EXPECT_THAT(bench.http.requests[static_cast<std::size_t>(i)].url,
                HasSubstr("/metrics/job/digits/cluster/c1"));
  }
  deliver(*action, of_jobs({"third"}));
  EXPECT_THAT(bench.http.requests, SizeIs(6));
}

TEST(Pushgateway, AGroupWithoutAJobIsOurs) {
  Workbench bench;
  const auto action = bench.make(
      "publish_metric", "{transport: pushgateway, url: 'https://g.example', labels: [rule]}");
  deliver(*action, of_jobs({"a", "b"}));
  ASSERT_THAT(bench.http.requests, SizeIs(1));
  EXPECT_EQ(bench.http.requests[0].url, "https://g.example/metrics/job/tocsin/cluster/c1");
}

// ---- OTLP

TEST(Otlp, PostsGaugesAndACumulativeSum) {
  Workbench bench;
  const auto action =
      bench.make("publish_metric", "{transport: otlp, url: 'https://otel.example:4318'}");
  EXPECT_EQ(deliver(*action, sample_notification()).outcome, OutcomeClass::delivered);
  const HttpRequest& request = bench.http.requests.at(0);
  EXPECT_EQ(request.url, "https://otel.example:4318/v1/metrics");
  EXPECT_THAT(request.headers, Contains(Pair("content-type", "application/json")));
  EXPECT_THAT(request.headers, Contains(Pair("content-encoding", "gzip")));
  const json body = json::parse(gunzip(request.body));
  EXPECT_EQ(request.body_in_words, gunzip(request.body));
  const json& resource = body["resourceMetrics"][0];
  EXPECT_EQ(resource["resource"]["attributes"][0],
            json::parse(R"({"key":"service.name","value":{"stringValue":"tocsin"}})"));
  const json& metrics = resource["scopeMetrics"][0]["metrics"];
  ASSERT_EQ(metrics.size(), 3u);
  EXPECT_EQ(metrics[0]["name"], "tocsin_issue_active");
  const json& point = metrics[0]["gauge"]["dataPoints"][0];
  EXPECT_EQ(point["asDouble"], 1);
  EXPECT_EQ(point["timeUnixNano"], "1767323045678000000");
  EXPECT_EQ(point["attributes"][3]["key"], "severity");
  EXPECT_EQ(metrics[1]["unit"], "s");
  EXPECT_EQ(metrics[2]["sum"]["aggregationTemporality"], 2);
  EXPECT_EQ(metrics[2]["sum"]["isMonotonic"], true);
}

TEST(Otlp, APathOfTheUrlIsKept) {
  Workbench bench;
  const auto action =
      bench.make("publish_metric", "{transport: otlp, url: 'https://otel.example/x/v1/metrics'}");
  deliver(*action, sample_notification());
  EXPECT_EQ(bench.http.requests.at(0).url, "https://otel.example/x/v1/metrics");
}

TEST(Otlp, APartialSuccessIsDeliveredAndCounted) {
  Workbench bench;
  const auto action =
      bench.make("publish_metric", "{transport: otlp, url: 'https://otel.example'}");
  for (const char* body :
       {R"({"partialSuccess":{"rejectedDataPoints":"2","errorMessage":"too old"}})",
        R"({"partialSuccess":{"rejectedDataPoints":2,"errorMessage":"too old"}})"}) {
    bench.http.answers.push_back(metric_answer(200, body));
    const auto out = deliver(*action, sample_notification());
    EXPECT_EQ(out.outcome, OutcomeClass::delivered);
    EXPECT_EQ(out.detail, "2 data points rejected: too old");
  }
  for (const char* body : {"{}", R"({"partialSuccess":{}})", "not JSON"}) {
    bench.http.answers.push_back(metric_answer(200, body));
    EXPECT_EQ(deliver(*action, sample_notification()).detail, "");
  }
}

TEST(Otlp, OnlyFourAnswersAreTriedAgain) {
  const std::map<int, OutcomeClass> cases{
      {429, OutcomeClass::throttled},     {502, OutcomeClass::transient},
      {503, OutcomeClass::transient},     {504, OutcomeClass::transient},
      {500, OutcomeClass::bad_payload},   {408, OutcomeClass::bad_payload},
      {507, OutcomeClass::bad_payload},   {400, OutcomeClass::bad_payload},
      {401, OutcomeClass::configuration}, {404, OutcomeClass::configuration}};
  for (const auto& [status, outcome] : cases) {
    Workbench bench;
    const auto action =
        bench.make("publish_metric", "{transport: otlp, url: 'https://otel.example'}");
    bench.http.answers.push_back(metric_answer(status));
    EXPECT_EQ(deliver(*action, sample_notification()).outcome, outcome) << status;
  }
  Workbench bench;
  const auto action =
      bench.make("publish_metric", "{transport: otlp, url: 'https://otel.example'}");
  bench.http.answers.push_back({HttpFailure::none, "", {503, {{"retry-after", "30"}}, ""}});
  const auto out = deliver(*action, sample_notification());
  EXPECT_EQ(out.outcome, OutcomeClass::throttled);
  EXPECT_EQ(out.retry_after, 30s);
  bench.http.answers.push_back({HttpFailure::unreachable, "", {}});
  EXPECT_EQ(deliver(*action, sample_notification()).outcome, OutcomeClass::transient);
}

// ---- StatsD

struct SentDatagrams final : DatagramSender {
  core::Status send(const std::string& to, const std::string& at,
                    std::span<const std::string> datagrams) override {
    host = to;
    port = at;
    all.insert(all.end(), datagrams.begin(), datagrams.end());
    return answer;
  }
  std::string host;
  std::string port;
  std::vector<std::string> all;
  core::Status answer;
};

struct StatsdBench : Workbench {
  StatsdBench() { environment.datagrams = &sent; }
  SentDatagrams sent;
};

TEST(Statsd, SendsGaugesWithTagsAndConfirmsNothing) {
  StatsdBench bench;
  const auto action = bench.make("publish_metric", "{transport: statsd, labels: [job, tensor]}");
  auto notification = sample_notification();
  notification.issues = {sample_issue("a,b|c#d\n")};
  const auto out = deliver(*action, notification);
  EXPECT_EQ(out.outcome, OutcomeClass::delivered);
  EXPECT_FALSE(out.confirmed);
  EXPECT_EQ(bench.sent.host, "127.0.0.1");
  EXPECT_EQ(bench.sent.port, "8125");
  EXPECT_THAT(bench.sent.all,
              ElementsAre("tocsin_issue_active:1|g|#job:digits,tensor:a_b_c_d_\n"
                          "tocsin_issue_last_transition_timestamp_seconds:1767323044.678|g|#job:"
                          "digits,tensor:a_b_c_d_\n"
                          "tocsin_issue_episodes_total:1|g|#job:digits,tensor:a_b_c_d_"));
}

TEST(Statsd, NoDatagramIsLongerThanAFrameCarries) {
  StatsdBench bench;
  const auto action =
      bench.make("publish_metric", "{transport: statsd, labels: [tensor], address: '[::1]:99'}");
  auto notification = sample_notification();
  notification.issues.clear();
  for (int i = 0; i < 40; ++i)
    notification.issues.push_back(sample_issue(std::string(100, 'x') + std::to_string(i)));
  notification.issues.push_back(sample_issue(std::string(2000, 'y')));
  const auto out = deliver(*action, notification);
  EXPECT_EQ(out.outcome, OutcomeClass::delivered);
  EXPECT_THAT(out.detail, HasSubstr("3 series are longer than a datagram"));
  std::set<std::string> lines;
  for (const std::string& datagram : bench.sent.all) {
    EXPECT_LE(datagram.size(), 1432u);
    std::istringstream in(datagram);
    for (std::string line; std::getline(in, line);) lines.insert(line);
  }
  EXPECT_THAT(lines, SizeIs(120));
  EXPECT_LT(bench.sent.all.size(), 20u) << "several lines per datagram";
  EXPECT_EQ(bench.sent.host, "::1");
}

TEST(Statsd, WhatThisMachineRefusesIsTriedAgain) {
  StatsdBench bench;
  const auto action = bench.make("publish_metric", "{transport: statsd}");
  bench.sent.answer = core::Error{core::Code::unavailable, "no such host"};
  const auto out = deliver(*action, sample_notification());
  EXPECT_EQ(out.outcome, OutcomeClass::transient);
  EXPECT_EQ(out.detail, "no such host");
}

TEST(Statsd, ADryRunSendsNothing) {
  StatsdBench bench;
  bench.environment.issue_metrics = nullptr;
  const Loaded loaded = load("receivers: {a: {publish_metric: {transport: statsd}}}\n");
  TrialOptions dry;
  dry.dry_run = true;
  const Trial trial = try_integration(loaded.receivers.integrations.at(0), bench.environment, dry);
  EXPECT_TRUE(trial.passed());
  EXPECT_THAT(bench.sent.all, SizeIs(0));
  EXPECT_EQ(trial.steps.at(0).exchanges.at(0).request, "datagram to 127.0.0.1:8125");
  EXPECT_THAT(trial.steps[0].exchanges[0].request_body, HasSubstr("tocsin_issue_active:1|g|#"));
}

TEST(Statsd, AnAddressIsAHostAndAPort) {
  for (const char* wrong : {"localhost", ":8125", "a:", "a:0", "a:65536", "a:1x", "::1:8125"}) {
    EXPECT_THAT(metric_errors_of("{transport: statsd, address: '" + std::string(wrong) + "'}"),
                HasSubstr("expected"))
        << wrong;
  }
  EXPECT_EQ(metric_errors_of("{transport: statsd, address: 'statsd.example:8125'}"), "");
}

// ---- CloudWatch

const std::string kCloud =
    "{transport: cloudwatch, aws: {region: eu-central-1, access_key_id: AKIDEXAMPLE, "
    "secret_access_key: wJalrXUtnFEMI}";

/// The form of a request, decoded.
std::map<std::string, std::string> form_of(const HttpRequest& request) {
  std::map<std::string, std::string> out;
  std::istringstream in(gunzip(request.body));
  for (std::string pair; std::getline(in, pair, '&');) {
    std::string value;
    const std::string text = pair.substr(pair.find('=') + 1);
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '%') {
        value += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
        i += 2;
      } else {
        value += text[i];
      }
    }
    out[pair.substr(0, pair.find('='))] = value;
  }
  return out;
}

TEST(CloudWatch, PutsMetricDataSigned) {
  Workbench bench;
  const auto action =
      bench.make("publish_metric", kCloud + ", namespace: ML/Training, labels: [job, tensor]}");
  auto notification = sample_notification();
  notification.issues = {sample_issue("größe\t")};
  EXPECT_EQ(deliver(*action, notification).outcome, OutcomeClass::delivered);
  const HttpRequest& request = bench.http.requests.at(0);
  EXPECT_EQ(request.url, "https://monitoring.eu-central-1.amazonaws.com/");
  ASSERT_TRUE(request.aws);
  EXPECT_EQ(request.aws->service, "monitoring");
  EXPECT_EQ(request.aws->secret_access_key, "wJalrXUtnFEMI");
  EXPECT_THAT(request.headers, Contains(Pair("content-encoding", "gzip")));
  const auto form = form_of(request);
  EXPECT_EQ(form.at("Action"), "PutMetricData");
  EXPECT_EQ(form.at("Version"), "2010-08-01");
  EXPECT_EQ(form.at("Namespace"), "ML/Training");
  EXPECT_EQ(form.at("MetricData.member.1.MetricName"), "tocsin_issue_active");
  EXPECT_EQ(form.at("MetricData.member.1.Value"), "1");
  EXPECT_EQ(form.at("MetricData.member.1.Timestamp"), "2026-01-02T03:04:05.678Z");
  EXPECT_EQ(form.at("MetricData.member.1.Dimensions.member.1.Name"), "job");
  EXPECT_EQ(form.at("MetricData.member.1.Dimensions.member.2.Value"), "gr____e\\x09");
  EXPECT_EQ(form.at("MetricData.member.2.Unit"), "Seconds");
  EXPECT_EQ(form.at("MetricData.member.2.Value"), "1767323044.678");
  EXPECT_EQ(form.count("MetricData.member.4.MetricName"), 0u);
}

TEST(CloudWatch, ARequestStaysWithinItsLimits) {
  Workbench bench;
  const auto action = bench.make("publish_metric", kCloud + ", labels: [tensor]}");
  auto notification = sample_notification();
  notification.issues.clear();
  for (int i = 0; i < 400; ++i) notification.issues.push_back(sample_issue(std::to_string(i)));
  deliver(*action, notification);
  ASSERT_THAT(bench.http.requests, SizeIs(2)) << "1200 data, 1000 per request";
  EXPECT_EQ(form_of(bench.http.requests[0]).count("MetricData.member.1000.Value"), 1u);
  EXPECT_EQ(form_of(bench.http.requests[0]).count("MetricData.member.1001.Value"), 0u);
  EXPECT_EQ(form_of(bench.http.requests[1]).count("MetricData.member.200.Value"), 1u);
  bench.http.requests.clear();
  for (auto& issue : notification.issues) {
    issue.issue.labels.set("tensor", issue.issue.labels.get("tensor") + std::string(1500, '/'));
  }
  for (auto& issue : notification.issues) ++issue.episode;
  deliver(*action, notification);
  EXPECT_GT(bench.http.requests.size(), 2u);
  for (const HttpRequest& request : bench.http.requests)
    EXPECT_LE(gunzip(request.body).size(), 1'000'000u);
  EXPECT_EQ(
      form_of(bench.http.requests[0]).at("MetricData.member.1.Dimensions.member.1.Value").size(),
      1024u);
}

TEST(CloudWatch, ItsErrorsHaveNames) {
  const auto error = [](const char* code) {
    return "<ErrorResponse><Error><Type>Sender</Type><Code>" + std::string(code) +
           "</Code><Message>m</Message></Error></ErrorResponse>";
  };
  struct Case {
    int status;
    const char* code;
    OutcomeClass outcome;
  };
  for (const Case& one : {Case{400, "Throttling", OutcomeClass::throttled},
                          Case{400, "RequestLimitExceeded", OutcomeClass::throttled},
                          Case{400, "InvalidParameterValue", OutcomeClass::bad_payload},
                          Case{400, "InvalidParameterCombination", OutcomeClass::bad_payload},
                          Case{400, "MissingParameter", OutcomeClass::bad_payload},
                          Case{403, "SignatureDoesNotMatch", OutcomeClass::configuration},
                          Case{400, "IncompleteSignature", OutcomeClass::configuration},
                          Case{403, "AccessDenied", OutcomeClass::configuration},
                          Case{500, "InternalServiceError", OutcomeClass::transient},
                          Case{501, "", OutcomeClass::transient}}) {
    Workbench bench;
    const auto action = bench.make("publish_metric", kCloud + "}");
    bench.http.answers.push_back(metric_answer(one.status, error(one.code)));
    const auto out = deliver(*action, sample_notification());
    EXPECT_EQ(out.outcome, one.outcome) << one.code;
    EXPECT_THAT(out.code, HasSubstr(one.code));
  }
}

TEST(CloudWatch, ItsKeysAreChecked) {
  EXPECT_EQ(metric_errors_of(kCloud + "}"), "");
  EXPECT_THAT(metric_errors_of("{transport: cloudwatch}"), HasSubstr("needs region and keys"));
  EXPECT_THAT(metric_errors_of(kCloud + ", namespace: AWS/EC2}"), HasSubstr("AWS/"));
  EXPECT_THAT(metric_errors_of(kCloud + ", namespace: 'a b!'}"), HasSubstr("expected letters"));
  EXPECT_THAT(metric_errors_of(kCloud + ", bearer_token: abcd}"), HasSubstr("signs its requests"));
  EXPECT_THAT(metric_errors_of("{namespace: x}"), HasSubstr("belongs to transport: cloudwatch"));
}

}  // namespace
}  // namespace tocsin::actions
