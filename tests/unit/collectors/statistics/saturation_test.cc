#include <gmock/gmock.h>

#include <limits>

#include "tests/support/statistic_harness.h"

namespace tocsin::collectors {
namespace {

using core::Dtype;
using core::SparseStat;
using testing_support::measure;
using testing_support::statistic_of;
using Floats = testing_support::Tensor<float>;

TEST(Saturation, CountsUnitsThatAreHardlyEverInside) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  // Bounds are saturated, and so are infinities: units inside in 0, 1 and 2 of two samples.
  const Floats batch{Dtype::f32, {-3, 0, 1, kInf, 3, 2}, {2, 3}};
  const auto given = measure(*statistic_of("saturation", {-3, 3, 50}), batch);
  EXPECT_EQ(given.at(SparseStat::unit_count), 3);
  EXPECT_EQ(given.at(SparseStat::unit_saturated_count), 1);
  EXPECT_THAT(given.parameters.at(SparseStat::unit_saturated_count),
              ::testing::ElementsAre(-3, 3, 50));
  EXPECT_EQ(
      measure(*statistic_of("saturation", {-3, 3, 51}), batch).at(SparseStat::unit_saturated_count),
      2);
}

}  // namespace
}  // namespace tocsin::collectors
