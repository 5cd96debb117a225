#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

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
