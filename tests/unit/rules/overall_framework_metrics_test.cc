#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/rules/timed_fixture.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(OverallFrameworkMetrics, SharesOfStepsByMode) {
  Timed job("overall_framework_metrics", "{}", "tocsin");
  job.steps(3, {1.0});
  job.step({1.0}, Mode::eval);
  job.end();
  EXPECT_THAT(summed_up(job.rule),
              HasSubstr(R"("steps":{"seconds":4,"percent":{"train":75,"eval":25}})"));
  EXPECT_TRUE(job.rule.firing().empty());
}

TEST(OverallFrameworkMetrics, TheTimeBetweenTheStepsOfAWorker) {
  Timed job("overall_framework_metrics", "{}", "tocsin");
  job.step({1.0});
  job.workers[0].header.time += kSecond;
  job.step({1.0});
  job.end();
  EXPECT_THAT(summed_up(job.rule), HasSubstr(R"("others":33.333)"));
  EXPECT_THAT(summed_up(job.rule), HasSubstr("much of the time passes between"));
}

TEST(OverallFrameworkMetrics, PhasesAndWhetherTheyAreBalanced) {
  const auto told = [](double forward, double backward) {
    Timed job("overall_framework_metrics", "{}", "tocsin");
    job.rule.feed(job.workers[0].dictionary({{core::DictionaryType::track, "phase"},
                                             {core::DictionaryType::span_name, "forward"},
                                             {core::DictionaryType::span_name, "backward"}}));
    job.step({1.0}, Mode::train, {{{"forward", forward}, {"backward", backward}}});
    job.end();
    return summed_up(job.rule);
  };
  EXPECT_THAT(told(0.2, 0.6),
              HasSubstr(R"("phase":{"seconds":0.8,"percent":{"backward":75,"forward":25},)"
                        R"("means":"backward takes 75 % of the time of forward and backward"})"));
  EXPECT_THAT(told(0.3, 0.7), Not(HasSubstr("of the time of forward"))) << "exactly 70 % is not";
}

TEST(OverallFrameworkMetrics, SmallOperatorsAreLeftOutAndTheRestIsTheWhole) {
  Timed job("overall_framework_metrics", "{}", "tocsin");
  job.rule.feed(job.workers[0].dictionary({{core::DictionaryType::track, "op.cpu"},
                                           {core::DictionaryType::span_name, "conv"},
                                           {core::DictionaryType::span_name, "relu"},
                                           {core::DictionaryType::span_name, "add"}}));
  job.step({1.0}, Mode::train,
           {{{"conv", 0.6, "op.cpu"}, {"relu", 0.2, "op.cpu"}, {"add", 0.01, "op.cpu"}}});
  job.end();
  EXPECT_THAT(summed_up(job.rule),
              HasSubstr(R"("op.cpu":{"seconds":0.81,"percent":{"conv":75,"relu":25}})"));
}

TEST(OverallFrameworkMetrics, TellsWhatItHasSoFarOncePerPeriod) {
  Timed job("overall_framework_metrics", "{scan_interval_us: 10000000}", "tocsin");
  job.workers[0].header.time = kStart - kStart % (10 * kSecond);
  const std::int64_t begin = job.workers[0].header.time;
  job.steps(9, {1.0});  // ends at 1 … 9 s
  EXPECT_TRUE(sums_of(job.rule).empty()) << "the first period is still open";
  job.steps(2, {1.0}, Mode::eval);  // at 10 and 11 s: of the second
  auto sums = sums_of(job.rule);
  ASSERT_EQ(sums.size(), 1U);
  EXPECT_EQ(sums[0].status, core::RuleState::in_progress);
  EXPECT_EQ(sums[0].time, begin + 10 * kSecond);
  EXPECT_THAT(sums[0].told, HasSubstr(R"("steps":{"seconds":9,"percent":{"train":100}})"));
  job.end();
  sums = sums_of(job.rule);
  ASSERT_EQ(sums.size(), 2U);
  EXPECT_THAT(sums[1].told, HasSubstr(R"("steps":{"seconds":11,)"));
}

TEST(OverallFrameworkMetrics, WithoutDurationsThereIsNoData) {
  RuleHarness rule = RuleHarness::of("overall_framework_metrics");
  FakeWorker worker;
  rule.feed(worker.start());
  rule.feed(worker.end());
  EXPECT_EQ(summed_up(rule), "{}");
  EXPECT_EQ(rule.rule_state(), "NoData");
}

}  // namespace
}  // namespace tocsin::rules
