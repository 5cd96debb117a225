#include <gmock/gmock.h>

#include <cmath>
#include <vector>

#include "tests/support/statistic_harness.h"

namespace tocsin::collectors {
namespace {

using core::Dtype;
using core::SparseStat;
using testing_support::measure;
using testing_support::statistic_of;
using Floats = testing_support::Tensor<float>;

double excess(TensorStatistic& of, std::vector<float> values, std::int64_t step) {
  return measure(of, Floats{Dtype::f32, std::move(values)}, step).at(SparseStat::delta_excess);
}

TEST(DeltaExcess, TheToleranceIsOfThePresentValue) {
  const auto one = statistic_of("delta_excess", {0.25}, {1000});
  one->admit({{1, 8, "w"}});
  EXPECT_TRUE(measure(*one, Floats{Dtype::f32, {4, 1}}, 10).empty());
  const auto given = measure(*one, Floats{Dtype::f32, {8, 1}}, 20);
  EXPECT_EQ(given.at(SparseStat::delta_excess), 4 - 0.25 * 8);
  EXPECT_EQ(given.at(SparseStat::delta_from_step), 10);
  EXPECT_EQ(excess(*one, {8, 1}, 30), -0.25) << "of the value nearest to its tolerance";
  EXPECT_EQ(excess(*one, {-8, 1}, 40), 16 - 2);
}

TEST(DeltaExcess, NaNIsNotKnownAndInfinitiesAgreeWithThemselves) {
  const auto one = statistic_of("delta_excess", {0.0}, {1000});
  one->admit({{1, 8, "w"}});
  measure(*one, Floats{Dtype::f32, {HUGE_VALF, 1}}, 1);
  EXPECT_EQ(excess(*one, {HUGE_VALF, 1}, 2), 0);
  EXPECT_EQ(excess(*one, {-HUGE_VALF, 1}, 3), HUGE_VAL);
  EXPECT_EQ(excess(*one, {2, 1}, 4), HUGE_VAL);
  EXPECT_TRUE(std::isnan(excess(*one, {std::nanf(""), 1}, 5)));
  EXPECT_TRUE(std::isnan(excess(*one, {2, 1}, 6)));
  EXPECT_EQ(excess(*one, {2, 1}, 7), 0);
}

TEST(DeltaExcess, AllOfALargeTensorIsLookedAt) {
  const auto one = statistic_of("delta_excess", {0.0});
  std::vector<float> values(3000, 1.F);
  one->admit({{1, 4 * values.size(), "w"}});
  measure(*one, Floats{Dtype::f32, values}, 1);
  values[2999] = 3.F;
  EXPECT_EQ(excess(*one, values, 2), 2);
}

TEST(DeltaExcess, AToleranceBelowNothingIsNone) {
  for (const StatisticDescriptor& one : builtin_statistics()) {
    if (one.request != "delta_excess") continue;
    const std::vector<double> bad{-1.0};
    EXPECT_EQ(one.make({}, bad), nullptr);
  }
}

}  // namespace
}  // namespace tocsin::collectors
