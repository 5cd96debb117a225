// publish_metric, transport remote_write: the bytes, the versions, what answers mean.
#include "actions/metrics/remote_write_body.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <snappy.h>

#include <bit>
#include <protozero/pbf_reader.hpp>

#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using namespace testing_support;
using core::OutcomeClass;

/// One series as a receiver reads it.
struct ReadSeries {
  std::map<std::string, std::string> labels;
  bool sorted = true;
  std::vector<std::pair<double, std::int64_t>> samples;
};
using PbfReader = protozero::pbf_reader;

std::string plain_of(const std::string& body) {
  std::string out;
  EXPECT_TRUE(snappy::Uncompress(body.data(), body.size(), &out));
  return out;
}

std::pair<double, std::int64_t> sample_of(PbfReader sample) {
  std::pair<double, std::int64_t> out{};
  while (sample.next()) {
    if (sample.tag() == 1) {
      out.first = sample.get_double();
    } else if (sample.tag() == 2) {
      out.second = sample.get_int64();
    } else {
      sample.skip();
    }
  }
  return out;
}

void take_label(ReadSeries& series, const std::string& name, const std::string& value) {
  if (!series.labels.empty() && series.labels.rbegin()->first >= name) series.sorted = false;
  series.labels[name] = value;
}

std::vector<ReadSeries> read_1(const std::string& body) {
  const std::string bytes = plain_of(body);
  std::vector<ReadSeries> out;
  PbfReader request(bytes);
  while (request.next()) {
    if (request.tag() != 1) {
      request.skip();
      continue;
    }
    ReadSeries& one = out.emplace_back();
    PbfReader series = request.get_message();
    while (series.next()) {
      if (series.tag() == 2) {
        one.samples.push_back(sample_of(series.get_message()));
        continue;
      }
      PbfReader label = series.get_message();
      std::string name;
      std::string value;
      while (label.next()) {
        std::string& text = label.tag() == 1 ? name : value;
        text = label.get_string();
      }
      take_label(one, name, value);
    }
  }
  return out;
}

std::vector<ReadSeries> read_2(const std::string& body) {
  const std::string bytes = plain_of(body);
  std::vector<std::string> symbols;
  std::vector<ReadSeries> out;
  PbfReader request(bytes);
  while (request.next()) {
    if (request.tag() == 4) {
      symbols.push_back(request.get_string());
      continue;
    }
    EXPECT_EQ(request.tag(), 5u);
    EXPECT_EQ(symbols.at(0), "");
    ReadSeries& one = out.emplace_back();
    PbfReader series = request.get_message();
    while (series.next()) {
      if (series.tag() == 1) {
        const auto refs = series.get_packed_uint32();
        for (auto at = refs.begin(); at != refs.end();) {
          const std::string name = symbols.at(*at++);
          take_label(one, name, symbols.at(*at++));
        }
      } else if (series.tag() == 2) {
        one.samples.push_back(sample_of(series.get_message()));
      } else {
        series.skip();
      }
    }
  }
  return out;
}

HttpResult written(std::size_t samples) {
  return {HttpFailure::none,
          "",
          {204, {{"x-prometheus-remote-write-samples-written", std::to_string(samples)}}, ""}};
}
HttpResult remote_answer(int status, std::string body = "") {
  return {HttpFailure::none, "", {status, {}, std::move(body)}};
}

std::string remote_settings(const std::string& more = "") {
  return "{transport: remote_write, url: 'https://prom.example/api/v1/write'" + more + "}";
}

// prompb/types.proto: one series {__name__="a"} with the value 1 at 2 ms, byte by byte.
TEST(RemoteWriteBody, IsTheOneOfTheSpecification) {
  const RemoteSample sample{{{"__name__", "a"}}, 1.0, &kIssueFamilies[0]};
  const std::string bytes = write_request_1({&sample, 1}, 2);
  const std::string series = std::string("\x0a\x1c") +  // timeseries, 28 bytes
                             "\x0a\x0d" + "\x0a\x08" + "__name__" + "\x12\x01" + "a" +  // label
                             "\x12\x0b" + "\x09" + std::string("\0\0\0\0\0\0\xf0\x3f", 8) +
                             "\x10\x02";  // sample
  EXPECT_EQ(bytes.substr(0, series.size()), series);
  EXPECT_THAT(bytes, HasSubstr("tocsin_issue_active")) << "metadata follows";
}

TEST(RemoteWriteBody, ASeriesThatEndsHasTheStaleMarker) {
  EXPECT_EQ(std::bit_cast<std::uint64_t>(stale_marker()), 0x7ff0000000000002u);
  IssueSeries series{{{"job", "digits"}}, true, kStart, 3};
  std::vector<RemoteSample> samples;
  add_samples(series, true, samples);
  for (const auto& body : {read_1(snappy_block(write_request_1(samples, 5))),
                           read_2(snappy_block(write_request_2(samples, 5)))}) {
    ASSERT_EQ(body.size(), 3u);
    for (const ReadSeries& one : body) {
      EXPECT_EQ(std::bit_cast<std::uint64_t>(one.samples.at(0).first), 0x7ff0000000000002u);
    }
  }
}

TEST(RemoteWrite, Sends20AndItsReceiverSaysWhatItWrote) {
  Workbench bench;
  const auto action = bench.make("publish_metric", remote_settings());
  bench.http.answers.push_back(written(3));
  const auto out = deliver(*action, sample_notification());
  EXPECT_EQ(out.outcome, OutcomeClass::delivered);
  EXPECT_EQ(out.detail, "");
  const HttpRequest& request = bench.http.requests.at(0);
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.url, "https://prom.example/api/v1/write");
  EXPECT_THAT(request.headers,
              Contains(Pair("content-type",
                            "application/x-protobuf;proto=io.prometheus.write.v2.Request")));
  EXPECT_THAT(request.headers, Contains(Pair("x-prometheus-remote-write-version", "2.0.0")));
  EXPECT_THAT(request.headers, Contains(Pair("content-encoding", "snappy")));
  const auto series = read_2(request.body);
  ASSERT_EQ(series.size(), 3u);
  EXPECT_TRUE(series[0].sorted);
  EXPECT_EQ(series[0].labels.at("__name__"), "tocsin_issue_active");
  EXPECT_EQ(series[0].labels.at("rule"), "exploding_tensor");
  EXPECT_EQ(series[0].samples.at(0), (std::pair<double, std::int64_t>{1.0, 1767323045678}));
  EXPECT_DOUBLE_EQ(series[1].samples.at(0).first, 1767323044.678);
  EXPECT_THAT(request.body_in_words,
              HasSubstr("tocsin_issue_active{cluster=\"c1\",job=\"digits\""));
  bench.http.answers.push_back(written(2));
  EXPECT_EQ(deliver(*action, sample_notification()).detail, "the receiver wrote 2 of 3 samples");
  EXPECT_EQ(bench.http.requests.size(), 2u);
  // It speaks 2.0: what it does not write now is no sign of 1.0.
  bench.http.answers.push_back(remote_answer(204));
  EXPECT_EQ(deliver(*action, sample_notification()).detail, "the receiver wrote 0 of 3 samples");
  EXPECT_EQ(bench.http.requests.size(), 3u);
}

TEST(RemoteWrite, FallsBackTo10AndStaysThere) {
  // 415; 2xx of a receiver that does not look at the type; 400 of one that cannot read it.
  for (const int status : {415, 204, 400}) {
    Workbench bench;
    const auto action = bench.make("publish_metric", remote_settings());
    bench.http.answers = {remote_answer(status), remote_answer(204)};
    EXPECT_EQ(deliver(*action, sample_notification()).outcome, OutcomeClass::delivered);
    ASSERT_EQ(bench.http.requests.size(), 2u) << status;
    const HttpRequest& request = bench.http.requests[1];
    EXPECT_THAT(request.headers, Contains(Pair("content-type", "application/x-protobuf")));
    EXPECT_THAT(request.headers, Contains(Pair("x-prometheus-remote-write-version", "0.1.0")));
    const auto series = read_1(request.body);
    ASSERT_EQ(series.size(), 3u);
    EXPECT_TRUE(series[0].sorted);
    EXPECT_EQ(series[2].labels.at("__name__"), "tocsin_issue_episodes_total");
    EXPECT_EQ(series[2].samples.at(0).first, 1.0);
    deliver(*action, sample_notification());
    EXPECT_EQ(bench.http.requests.size(), 3u) << "2.0 is not tried again";
    EXPECT_GT(read_1(bench.http.requests[2].body)[0].samples.at(0).second,
              series[0].samples.at(0).second);
  }
}

TEST(RemoteWrite, AVersionThatIsAskedForIsTheOnlyOne) {
  Workbench bench;
  const auto one = bench.make("publish_metric", remote_settings(", version: '1'"));
  deliver(*one, sample_notification());
  EXPECT_THAT(bench.http.requests.at(0).headers,
              Contains(Pair("x-prometheus-remote-write-version", "0.1.0")));
  const auto two = bench.make("publish_metric", remote_settings(", version: '2'"));
  for (const int status : {415, 204}) {
    bench.http.answers = {remote_answer(status)};
    const auto out = deliver(*two, sample_notification());
    EXPECT_EQ(out.outcome, OutcomeClass::configuration) << status;
    EXPECT_THAT(out.detail, HasSubstr("does not speak remote write 2.0"));
  }
  EXPECT_EQ(bench.http.requests.size(), 3u);
}

TEST(RemoteWrite, OnlyFailuresOfTheReceiverAreTriedAgain) {
  const std::vector<std::pair<int, OutcomeClass>> cases{
      {500, OutcomeClass::transient},    {501, OutcomeClass::transient},
      {503, OutcomeClass::transient},    {429, OutcomeClass::throttled},
      {400, OutcomeClass::bad_payload},  {408, OutcomeClass::bad_payload},
      {413, OutcomeClass::bad_payload},  {425, OutcomeClass::bad_payload},
      {401, OutcomeClass::configuration}};
  for (const auto& [status, outcome] : cases) {
    Workbench bench;
    const auto action = bench.make("publish_metric", remote_settings(", version: '1'"));
    bench.http.answers.push_back(remote_answer(status, "out of order"));
    const auto out = deliver(*action, sample_notification());
    EXPECT_EQ(out.outcome, outcome) << status;
    EXPECT_EQ(out.detail, "out of order");
    EXPECT_EQ(bench.http.requests.size(), 1u);
  }
}

TEST(RemoteWrite, ManySeriesGoInSeveralRequests) {
  Workbench bench;
  const auto action =
      bench.make("publish_metric", remote_settings(", version: '1', labels: [tensor]"));
  auto notification = sample_notification();
  notification.issues.clear();
  for (int i = 0; i < 1000; ++i) notification.issues.push_back(sample_issue(std::to_string(i)));
  EXPECT_EQ(deliver(*action, notification).outcome, OutcomeClass::delivered);
  ASSERT_EQ(bench.http.requests.size(), 2u);
  EXPECT_EQ(read_1(bench.http.requests[0].body).size() + read_1(bench.http.requests[1].body).size(),
            3000u);
}

TEST(RemoteWrite, KeysOfOthersAreRefused) {
  const auto errors = [](const std::string& settings) {
    return load("receivers: {a: {publish_metric: " + settings + "}}\n").errors;
  };
  EXPECT_EQ(errors(remote_settings()), "");
  EXPECT_THAT(errors("{transport: remote_write}"), HasSubstr("needs url or url_file"));
  EXPECT_THAT(errors("{url: 'https://a.example'}"), HasSubstr("belongs to a transport over HTTP"));
  EXPECT_THAT(errors("{transport: kafka, bearer_token: abcd}"), HasSubstr("bearer_token"));
  EXPECT_THAT(errors("{version: '1'}"), HasSubstr("belongs to transport: remote_write"));
  EXPECT_THAT(errors(remote_settings(", address: 'a:1'")),
              HasSubstr("belongs to transport: statsd"));
  EXPECT_THAT(errors("{transport: remote_writ}"), HasSubstr("remote_write"));
  EXPECT_THAT(errors(remote_settings(", version: '3'")), HasSubstr("one of auto, 1, 2"));
  EXPECT_THAT(errors(remote_settings(", labels: [a.b, a_b]")), HasSubstr("would both be"));
}

TEST(RemoteWrite, ATestMessageIsShownInWords) {
  const Loaded loaded = load("receivers: {a: {publish_metric: " + remote_settings() + "}}\n");
  Workbench bench;
  bench.environment.issue_metrics = nullptr;
  bench.http.answers = {written(3), written(3), written(3)};
  TrialOptions drill;
  drill.drill = true;
  const Trial trial =
      try_integration(loaded.receivers.integrations.at(0), bench.environment, drill);
  EXPECT_EQ(trial.skipped, "");
  EXPECT_TRUE(trial.passed());
  ASSERT_EQ(trial.steps.size(), 2u);
  EXPECT_THAT(trial.steps[0].exchanges.at(0).request_body, HasSubstr("test=\"true\"} 1"));
  ASSERT_EQ(trial.steps[1].exchanges.size(), 2u);
  EXPECT_THAT(trial.steps[1].exchanges[0].request_body, HasSubstr("} 0"));
  EXPECT_THAT(trial.steps[1].exchanges[1].request_body, HasSubstr("} ended"));
  const Loaded scraped = load("receivers: {a: {publish_metric: {}}}\n");
  EXPECT_NE(try_integration(scraped.receivers.integrations.at(0), bench.environment, drill).skipped,
            "");
}

}  // namespace
}  // namespace tocsin::actions
