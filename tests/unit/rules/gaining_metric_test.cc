// Of rounds of boosting: a loss that turns while another metric of the same data still gains.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

#include "rules/builtin/shared/metric_name.h"
#include "tests/unit/rules/rule_bench.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;

/// How often a rule tells of 60 rounds whose log loss turns after ten; `order`: the growing metric of the
/// data `set`.
std::size_t told_beside(const std::string& rule_name, const std::string& set,
                        const std::function<double(int)>& order, Mode mode = Mode::train) {
  SeriesBench rule(rule_name.c_str());
  for (int i = 0; i < 60; ++i) {
    const double loss = i < 10 ? 0.7 - 0.03 * i : 0.4 + 0.02 * (i - 10);
    rule.step(mode, i,
              {{"train-logloss", 0.7 / (1 + i)},
               {"valid-logloss", loss},
               {set + "-auc", order(i), core::Role::metric}});
  }
  return rule.told.size();
}

double gains(int round) { return 1 - 0.5 / (1 + 0.1 * round); }
double stands(int round) { return round < 10 ? 0.5 + 0.04 * round : 0.9; }

class GainingMetric : public ::testing::TestWithParam<const char*> {};

TEST_P(GainingMetric, KeepsALossThatTurnsQuiet) {
  EXPECT_EQ(told_beside(GetParam(), "valid", gains), 0U);
}

TEST_P(GainingMetric, MustBeOfTheSameData) {
  EXPECT_GT(told_beside(GetParam(), "test", gains), 0U);
}

TEST_P(GainingMetric, MustStillGain) { EXPECT_GT(told_beside(GetParam(), "valid", stands), 0U); }

TEST_P(GainingMetric, MustNotHaveGivenBack) {
  // It jumps to a best in every tenth round, and falls behind by a fifth of its gain.
  EXPECT_GT(told_beside(GetParam(), "valid",
                        [](int round) { return gains(round) - (round % 10 == 0 ? 0 : 0.1); }),
            0U);
}

TEST_P(GainingMetric, IsNoMatterOfEvaluationPasses) {
  EXPECT_EQ(told_beside(GetParam(), "valid", gains, Mode::eval),
            told_beside(GetParam(), "valid", stands, Mode::eval));
}

TEST(MetricName, HowItIsAveragedChangesNothing) {
  EXPECT_TRUE(metric_name("valid-average_precision").grows);
  EXPECT_TRUE(metric_name("val_balanced_accuracy").grows);
  EXPECT_FALSE(metric_name("valid-average_error").grows);
  EXPECT_FALSE(metric_name("valid-average_error").counts_samples) << "of quantities, perhaps";
  EXPECT_FALSE(metric_name("valid-precision_loss").grows);
}

INSTANTIATE_TEST_SUITE_P(Rules, GainingMetric, ::testing::Values("overfit", "overtraining"));

}  // namespace
}  // namespace tocsin::rules
