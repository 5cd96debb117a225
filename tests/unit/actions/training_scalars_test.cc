// Scalars of runs beside the states of issues, in every way in which publish_metric shows them.
#include "actions/message/training_scalars.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "actions/message/series_text.h"
#include "actions/metrics/pushed_metrics.h"
#include "actions/metrics/recorded_scalars.h"
#include "actions/metrics/remote_write_body.h"
#include "actions/transport/datagram_sender.h"
#include "core/json.h"
#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using namespace testing_support;

LoggedScalar logged(const std::string& name, double value, std::uint32_t rank = 0,
                    core::WallTime time = kStart) {
  return {kRun, "digits", "worker_" + std::to_string(rank), rank, name, core::Mode::train, value,
          7,    time};
}

TrainingScalars::Options wanting(std::vector<std::string> patterns, std::size_t most = 1000) {
  TrainingScalars::Options out;
  out.patterns = std::move(patterns);
  out.max_series = most;
  return out;
}

std::vector<std::string> texts(TrainingScalars& scalars, core::WallTime now = kStart) {
  std::vector<std::string> out;
  for (const IssueSeries& one : scalars.series("a", now)) {
    out.push_back(one.label("scalar") + "@" + one.label("rank") + "=" +
                  std::to_string(static_cast<int>(*one.scalar * 100)));
  }
  return out;
}

TEST(TrainingScalars, OnlyWhatIsAskedForAndTheWholeName) {
  TrainingScalars scalars;
  EXPECT_FALSE(scalars.wanted());
  scalars.want("a", wanting({"loss", "train/.*"}));
  EXPECT_TRUE(scalars.wanted());
  EXPECT_TRUE(scalars.wants("train/acc"));
  EXPECT_FALSE(scalars.wants("eval_loss"));
  scalars.note(logged("loss", 0.5));
  scalars.note(logged("eval_loss", 0.7));
  EXPECT_THAT(texts(scalars), ElementsAre("loss@0=50"));
}

TEST(TrainingScalars, TheNewestOfEachRank) {
  TrainingScalars scalars;
  scalars.want("a", wanting({"loss"}));
  scalars.note(logged("loss", 0.5));
  scalars.note(logged("loss", 0.25, 0, kStart + 1s));
  scalars.note(logged("loss", 0.9, 0, kStart - 1s));
  scalars.note(logged("loss", 0.75, 1));
  EXPECT_THAT(texts(scalars), ElementsAre("loss@0=25", "loss@1=75"));
}

TEST(TrainingScalars, BoundedAndForgottenAfterLinger) {
  TrainingScalars scalars;
  scalars.want("a", wanting({".*"}, 2));
  for (const char* name : {"a", "b", "c"}) scalars.note(logged(name, 1));
  EXPECT_EQ(scalars.refused(), 1U);
  EXPECT_THAT(texts(scalars), SizeIs(2));
  EXPECT_THAT(texts(scalars, kStart + 16min), IsEmpty());
  scalars.note(logged("c", 1, 0, kStart + 16min));
  EXPECT_THAT(texts(scalars, kStart + 16min), ElementsAre("c@0=100")) << "there is room again";
}

TEST(TrainingScalars, WhatIsNoNumberIsNotShown) {
  TrainingScalars scalars;
  scalars.want("a", wanting({"loss"}));
  scalars.note(logged("loss", 1));
  scalars.note(logged("loss", std::numeric_limits<double>::quiet_NaN(), 0, kStart + 1s));
  EXPECT_THAT(texts(scalars), IsEmpty()) << "the last number would hide that there is none";
}

TEST(TrainingScalars, PatternsAreChecked) {
  EXPECT_EQ(scalar_pattern_problem({"loss", "train/.*"}), "");
  EXPECT_THAT(scalar_pattern_problem({"("}), HasSubstr("missing"));
  EXPECT_THAT(load("receivers: {a: {publish_metric: {scalars: ['(']}}}").errors,
              HasSubstr("missing )"));
}

TEST(TrainingScalars, PrometheusScrapesThemWithTheirDigits) {
  TrainingScalars scalars;
  scalars.want("a", wanting({"loss"}), true);
  scalars.want("b", wanting({"loss"}), true);
  EXPECT_EQ(scalars.scraped_text(kStart), "");
  scalars.note(logged("loss", 0.0123456789));
  EXPECT_EQ(scalars.scraped_text(kStart),
            "# HELP tocsin_training_scalar newest value of a scalar that a run has logged\n"
            "# TYPE tocsin_training_scalar gauge\n"
            "tocsin_training_scalar{job=\"digits\",mode=\"train\",rank=\"0\",run_uid=\"" +
                to_text(kRun) + "\",scalar=\"loss\",worker=\"worker_0\"} 0.0123456789\n")
      << "once, though two ask for it";
}

// ---- pushes

struct ScalarBench : Workbench {
  ScalarBench() {
    environment.scalars = &scalars;
    environment.datagrams = &datagrams;
    scalars_of.patterns = {"loss"};
  }
  struct Datagrams final : DatagramSender {
    core::Status send(const std::string&, const std::string&,
                      std::span<const std::string> sent) override {
      for (const std::string& one : sent) text += one + "\n";
      return core::ok();
    }
    std::string text;
  };
  /// What a round of this transport sends after one scalar was logged.
  std::string pushed_by(const std::string& keys) {
    environment.issue_metrics = nullptr;  // no thread of rounds
    environment.delivers = [] { return true; };
    const auto action = make("publish_metric", "{scalars: [loss], " + keys + "}");
    scalars.note(logged("loss", 0.375));
    dynamic_cast<PushedMetrics&>(*action).turn();
    std::string out = datagrams.text;
    for (const HttpRequest& one : http.requests) out += one.body_in_words + one.body;
    return out;
  }
  TrainingScalars scalars;
  TrainingScalars::Options scalars_of;
  Datagrams datagrams;
};

TEST(TrainingScalars, EachTransportThatPushesHasThem) {
  EXPECT_THAT(ScalarBench().pushed_by("transport: otlp, url: 'https://o.example'"),
              HasSubstr(R"("asDouble":0.375)"));
  EXPECT_THAT(ScalarBench().pushed_by("transport: pushgateway, url: 'https://p.example'"),
              HasSubstr("scalar=\"loss\",worker=\"worker_0\"} 0.375\n"));
  EXPECT_THAT(ScalarBench().pushed_by("transport: statsd"),
              HasSubstr("tocsin_training_scalar:0.375|g|#job:digits,mode:train,rank:0"));
  const std::string cloud = ScalarBench().pushed_by(
      "transport: cloudwatch, aws: {region: eu-central-1, access_key_id: a, secret_access_key: b}");
  EXPECT_THAT(cloud, HasSubstr("MetricName=tocsin_training_scalar"));
  EXPECT_THAT(cloud, HasSubstr("Value=0.375"));
  for (const std::string& one : {cloud}) EXPECT_THAT(one, Not(HasSubstr("tocsin_issue_active")));
}

TEST(TrainingScalars, RemoteWriteHasOneSampleOfTheirFamily) {
  TrainingScalars scalars;
  scalars.want("a", wanting({"loss"}));
  scalars.note(logged("loss", 0.375));
  std::vector<RemoteSample> samples;
  add_samples(scalars.series("a", kStart).at(0), false, samples);
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_EQ(samples[0].value, 0.375);
  EXPECT_THAT(samples[0].labels, ::testing::Contains(std::pair<std::string, std::string>(
                                     "__name__", "tocsin_training_scalar")));
  const std::string body = write_request_1(samples, 1);
  EXPECT_THAT(body, HasSubstr("newest value of a scalar"));
  EXPECT_THAT(write_request_1({}, 1), Not(HasSubstr("newest value of a scalar")));
}

TEST(TrainingScalars, RecordsOfTheTopicHaveOneOfEachRun) {
  ScalarBench bench;
  PushSettings settings;
  settings.scalars = bench.scalars_of;
  RecordedScalars recorded(settings, bench.environment,
                           {"a/publish_metric", "a", "publish_metric"});
  bench.scalars.note(logged("loss", 0.375));
  recorded.turn();
  recorded.turn();
  ASSERT_EQ(bench.records.size(), 1U) << "once per interval";
  EXPECT_EQ(bench.records[0].topic, "metrics");
  EXPECT_EQ(bench.records[0].key, to_text(kRun));
  EXPECT_THAT(*bench.records[0].value,
              HasSubstr(R"("name":"tocsin_training_scalar","value":0.375,)"));
  EXPECT_THAT(*bench.records[0].value,
              HasSubstr(R"("labels":{"scalar":"loss","rank":"0","worker":"worker_0"})"));
  bench.clock.advance(1min);
  recorded.turn();
  EXPECT_EQ(bench.records.size(), 2U);
}

TEST(TrainingScalars, NobodyWhoDoesNotAskPaysForThem) {
  ScalarBench bench;
  const auto action = bench.make("publish_metric", "{transport: statsd}");
  EXPECT_FALSE(bench.scalars.wanted());
}

}  // namespace
}  // namespace tocsin::actions
