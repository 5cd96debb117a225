#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using namespace testing_support;

constexpr char kLabels[] =
    "{rule=\"exploding_tensor\",severity=\"error\",job=\"digits\",cluster=\"c1\"}";

// How many series are shown.
std::size_t series(IssueMetrics& metrics, core::WallTime now = kStart) {
  const std::string text = metrics.render(now);
  std::size_t count = 0;
  for (auto at = text.find("\ntocsin_issue_active{"); at != std::string::npos;
       at = text.find("\ntocsin_issue_active{", at + 1)) {
    ++count;
  }
  return count;
}

TEST(PublishMetric, ShowsAFiringIssueAsOneAndAResolvedOneAsZero) {
  Workbench bench;
  const auto action = bench.make("publish_metric", "{}");
  EXPECT_EQ(deliver(*action, sample_notification()).outcome, core::OutcomeClass::delivered);
  EXPECT_THAT(bench.metrics.render(kStart),
              HasSubstr(std::string("tocsin_issue_active") + kLabels + " 1\n"));
  EXPECT_THAT(bench.metrics.render(kStart),
              HasSubstr(std::string("tocsin_issue_last_transition_timestamp_seconds") + kLabels +
                        " 1767323044.678\n"));
  EXPECT_THAT(bench.metrics.render(kStart),
              HasSubstr(std::string("tocsin_issue_episodes_total") + kLabels + " 1\n"));

  deliver(*action, sample_notification("ntf_two", core::NotificationKind::close));
  EXPECT_THAT(bench.metrics.render(kStart + 61s),
              HasSubstr(std::string("tocsin_issue_active") + kLabels + " 0\n"));
}

TEST(IssueMetrics, RepetitionChangesNothing) {
  IssueMetrics metrics;
  metrics.apply(sample_issue());
  const std::string once = metrics.render(kStart);
  for (int i = 0; i < 3; ++i) metrics.apply(sample_issue());
  EXPECT_EQ(metrics.render(kStart), once);
}

TEST(IssueMetrics, AnOldReportNeverReopensAnIssue) {
  IssueMetrics metrics;
  auto issue = sample_issue();
  issue.episode = 2;
  metrics.apply(issue);
  auto resolved = issue;
  resolved.issue.status = core::IssueStatus::resolved;
  resolved.issue.ends_at = kStart;
  metrics.apply(resolved);
  metrics.apply(issue);           // the same episode again
  metrics.apply(sample_issue());  // episode 1
  EXPECT_THAT(metrics.render(kStart), HasSubstr("\"} 0\n"));
  EXPECT_THAT(metrics.render(kStart), HasSubstr("episodes_total" + std::string(kLabels) + " 2\n"));
}

TEST(IssueMetrics, IssuesThatDifferInOtherLabelsShareASeriesThatIsActiveWhileAnyIs) {
  IssueMetrics metrics;
  metrics.apply(sample_issue("a"));
  auto other = sample_issue("b");
  other.issue.status = core::IssueStatus::resolved;
  other.issue.ends_at = kStart;
  metrics.apply(other);
  EXPECT_EQ(series(metrics), 1u);
  EXPECT_THAT(metrics.render(kStart),
              HasSubstr(std::string("tocsin_issue_active") + kLabels + " 1\n"));
}

TEST(IssueMetrics, IsBoundedAndCountsWhatItRefused) {
  IssueMetrics metrics({{"tensor"}, 2, 1h});
  EXPECT_TRUE(metrics.apply(sample_issue("a")));
  EXPECT_TRUE(metrics.apply(sample_issue("b")));
  EXPECT_FALSE(metrics.apply(sample_issue("c")));
  EXPECT_TRUE(metrics.apply(sample_issue("a")));
  EXPECT_EQ(series(metrics), 2u);
  EXPECT_THAT(metrics.render(kStart), HasSubstr("tocsin_issue_series_refused_total 1\n"));
}

TEST(IssueMetrics, ForgetsAResolvedIssueAfterItsLinger) {
  IssueMetrics metrics({{"job"}, 10, 15min});
  auto issue = sample_issue();
  issue.issue.status = core::IssueStatus::resolved;
  issue.issue.ends_at = kStart;
  metrics.apply(issue);
  EXPECT_THAT(metrics.render(kStart + 15min), HasSubstr("tocsin_issue_active{job=\"digits\"} 0\n"));
  EXPECT_THAT(metrics.render(kStart + 15min + 1ns), Not(HasSubstr("digits")));
  EXPECT_EQ(series(metrics), 0u);
}

TEST(IssueMetrics, EscapesWhatALabelHolds) {
  IssueMetrics metrics({{"tensor", "my-label"}, 10, 1h});
  auto issue = sample_issue("a\"b\\c\nd");
  issue.issue.labels.set("my-label", "x");
  metrics.apply(issue);
  EXPECT_THAT(metrics.render(kStart), HasSubstr("{tensor=\"a\\\"b\\\\c\\nd\",my_label=\"x\"} 1\n"));
}

TEST(IssueMetrics, AMoreSevereReportMovesTheIssueToItsSeries) {
  IssueMetrics metrics;
  metrics.apply(sample_issue());
  auto worse = sample_issue();
  worse.issue.labels.set("severity", "critical");
  metrics.apply(worse);
  EXPECT_EQ(series(metrics), 1u);
  EXPECT_THAT(metrics.render(kStart), HasSubstr("severity=\"critical\""));
}

std::string metric_errors(const std::string& settings) {
  return load("receivers: {a: {publish_metric: " + settings + "}}\n").errors;
}

TEST(PublishMetric, NamesThatBecomeOneAreRefused) {
  EXPECT_THAT(metric_errors("{labels: [a.b, rule, a_b]}"),
              HasSubstr("\"a.b\" and \"a_b\" would both be \"a_b\""));
  EXPECT_THAT(metric_errors("{labels: [rule, rule]}"), HasSubstr("would both be"));
  EXPECT_THAT(metric_errors("{labels: ['9a', '8a']}"), HasSubstr("would both be"));
  EXPECT_THAT(metric_errors("{labels: [__name__]}"), HasSubstr("Prometheus keeps for itself"));
  EXPECT_THAT(metric_errors("{labels: ['..x']}"), HasSubstr("Prometheus keeps for itself"));
  EXPECT_THAT(metric_errors("{labels: ['']}"), HasSubstr("a label has a name"));
  EXPECT_EQ(metric_errors("{labels: [a.b, a.c]}"), "");
  EXPECT_EQ(metric_errors("{transport: kafka, labels: [a.b, a_b]}"), "");
}

TEST(IssueMetrics, TwoIntegrationsNeverMakeALabelComeTwice) {
  IssueMetrics metrics;
  metrics.widen({{"a.b"}, 10, 1h});
  metrics.widen({{"a_b", "__name__"}, 10, 1h});
  auto issue = sample_issue();
  for (const char* name : {"a.b", "a_b", "__name__"}) issue.issue.labels.set(name, name);
  metrics.apply(issue);
  EXPECT_THAT(metrics.render(kStart), HasSubstr("tocsin_issue_active{a_b=\"a.b\"} 1\n"));
}

TEST(PublishMetric, MaxSeriesIsHonouredAtAnyValue) {
  for (const auto& [most, shown] : {std::pair{"0", 0u}, {"1", 1u}, {"2", 2u}, {"1000000000", 3u}}) {
    Workbench bench;
    const auto action =
        bench.make("publish_metric", std::string("{labels: [tensor], max_series: ") + most + "}");
    auto notification = sample_notification();
    notification.issues = {sample_issue("a"), sample_issue("b"), sample_issue("c")};
    EXPECT_EQ(deliver(*action, notification).outcome, core::OutcomeClass::delivered);
    EXPECT_EQ(series(bench.metrics), shown) << most;
  }
}

TEST(PublishMetric, LingerIsHonouredAtAnyValueSinceTheEndWasHeardOf) {
  for (const auto& [linger, left] : {std::pair{"0s", core::Duration{}},
                                     {"1s", core::Duration{1s}},
                                     {"90m", 90min},
                                     {"1000000h", core::Duration{1'000'000h}}}) {
    Workbench bench;
    const auto action = bench.make("publish_metric", std::string("{linger: ") + linger + "}");
    deliver(*action, sample_notification());
    bench.clock.advance(10min);  // the message came late
    deliver(*action, sample_notification("two", core::NotificationKind::close));
    const core::WallTime heard = bench.clock.now();
    EXPECT_EQ(series(bench.metrics, heard + left), 1u) << linger;
    EXPECT_THAT(bench.metrics.render(heard + left), HasSubstr("\"} 0\n"));
    EXPECT_EQ(series(bench.metrics, heard + left + 1ns), 0u) << linger;
  }
}

TEST(IssueMetrics, WhatOnlyLingersGivesWayToWhatFires) {
  IssueMetrics metrics({{"tensor"}, 2, 1h});
  auto over = sample_issue("over");
  over.issue.status = core::IssueStatus::resolved;
  over.issue.ends_at = kStart;
  EXPECT_TRUE(metrics.apply(over));
  EXPECT_TRUE(metrics.apply(sample_issue("a")));
  EXPECT_TRUE(metrics.apply(sample_issue("b")));
  EXPECT_THAT(metrics.render(kStart), Not(HasSubstr("over")));
  EXPECT_FALSE(metrics.apply(sample_issue("c")));
}

TEST(IssueMetrics, AnEpisodeThatIsOverShowsZeroAtOnce) {
  IssueMetrics metrics;
  const auto issue = sample_issue();
  metrics.apply(issue);
  metrics.end(issue.issue_key, issue.episode, kStart);
  EXPECT_THAT(metrics.render(kStart), HasSubstr("\"} 0\n"));
  EXPECT_EQ(series(metrics, kStart + 15min), 1u);
  EXPECT_EQ(series(metrics, kStart + 15min + 1ns), 0u);
  auto again = issue;
  again.episode = 2;
  metrics.apply(again);
  EXPECT_THAT(metrics.render(kStart), HasSubstr("\"} 1\n"));
  metrics.end(issue.issue_key, 1, kStart);
  EXPECT_THAT(metrics.render(kStart), HasSubstr("\"} 1\n")) << "the end of the one before";
}

TEST(IssueMetrics, AnEpisodeThatEndedBeforeItWasToldIsNeverShownAsFiring) {
  IssueMetrics metrics;
  const auto issue = sample_issue();
  metrics.end(issue.issue_key, issue.episode, kStart);
  metrics.apply(issue, kStart + 30s);
  EXPECT_THAT(metrics.render(kStart), HasSubstr("\"} 0\n"));
}

TEST(IssueMetrics, NoValueBreaksTheExposition) {
  IssueMetrics metrics({{"tensor"}, 100, 1h});
  const std::vector<std::string> odd{"a\rb",
                                     std::string("a\0b", 3),
                                     "\x7F",
                                     "\x1B[31m",
                                     "a\xFF\xFE",
                                     "\xC2",
                                     "\xEF\xBF\xBF",
                                     "} 1\nevil 2",
                                     "\\",
                                     "\\n",
                                     "\"",
                                     std::string(20'000, 'x'),
                                     std::string(20'000, 'y'),
                                     "\t"};
  for (const std::string& value : odd) EXPECT_TRUE(metrics.apply(sample_issue(value)));
  const std::string text = metrics.render(kStart);
  for (const char c : text) {
    EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << static_cast<int>(c);
  }
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#")) continue;
    EXPECT_TRUE(line.starts_with("tocsin_issue_")) << line;
    EXPECT_LT(line.size(), 5000u);
  }
  EXPECT_EQ(series(metrics), odd.size());
}

TEST(PublishMetric, WritesScalarsToTheMetricsTopic) {
  Workbench bench;
  const auto action = bench.make("publish_metric", "{transport: kafka, labels: [rule]}");
  deliver(*action, sample_notification());
  ASSERT_EQ(bench.records.size(), 1u);
  EXPECT_EQ(bench.records[0].topic, "metrics");
  EXPECT_EQ(bench.records[0].key, to_text(kRun));
  const auto scalars = nlohmann::json::parse(*bench.records[0].value);
  ASSERT_EQ(scalars.size(), 3u);
  EXPECT_EQ(scalars[0]["name"], "tocsin_issue_active");
  EXPECT_EQ(scalars[0]["value"], 1);
  EXPECT_EQ(scalars[0]["run"], to_text(kRun));
  EXPECT_EQ(scalars[0]["step"], 412);
  EXPECT_EQ(scalars[0]["labels"]["rule"], "exploding_tensor");
  EXPECT_FALSE(scalars[0]["labels"].contains("job"));
}

TEST(PublishMetric, RetriesWhileTheTopicCannotBeWritten) {
  Workbench bench;
  const auto action = bench.make("publish_metric", "{transport: kafka}");
  bench.publish_answer = core::unavailable("broker is down");
  EXPECT_EQ(deliver(*action, sample_notification()).outcome, core::OutcomeClass::transient);
  bench.publish_answer = core::not_found("no topic metrics");
  EXPECT_EQ(deliver(*action, sample_notification()).outcome, core::OutcomeClass::configuration);
}

}  // namespace
}  // namespace tocsin::actions
