#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tests/support/statistic_harness.h"

namespace tocsin::collectors {
namespace {

using core::Dtype;
using core::SparseStat;
using testing_support::measure;
using testing_support::statistic_of;
using testing_support::Tensor;

TEST(Quantiles, AreLinearBetweenNeighbours) {
  // By hand: 0 … 10 has position 10·q.
  std::vector<double> values{10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0};
  const auto given = measure(*statistic_of("quantiles"), Tensor<double>{Dtype::f64, values});
  EXPECT_DOUBLE_EQ(given.at(SparseStat::p05), 0.5);
  EXPECT_DOUBLE_EQ(given.at(SparseStat::p25), 2.5);
  EXPECT_DOUBLE_EQ(given.at(SparseStat::p75), 7.5);
  EXPECT_DOUBLE_EQ(given.at(SparseStat::p95), 9.5);
  EXPECT_FALSE(given.is_approximate);
}

TEST(Quantiles, OfALargeTensorAreTakenOfSomeElementsAndSaySo) {
  std::vector<float> values(1'000'003);
  std::iota(values.begin(), values.end(), 0.F);
  const auto statistic = statistic_of("quantiles");
  const auto given = measure(*statistic, Tensor<float>{Dtype::f32, values});
  EXPECT_TRUE(given.is_approximate);
  EXPECT_NEAR(given.at(SparseStat::p05), 50'000, 500);
  EXPECT_NEAR(given.at(SparseStat::p95), 950'000, 500);
  // A period in the data is not met: half of these are 0.
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 2 == 0 ? 0 : 1;
  const auto periodic = measure(*statistic_of("median"), Tensor<float>{Dtype::f32, values});
  EXPECT_TRUE(periodic.is_approximate);
  const auto quarters = measure(*statistic, Tensor<float>{Dtype::f32, values});
  EXPECT_EQ(quarters.at(SparseStat::p25), 0);
  EXPECT_EQ(quarters.at(SparseStat::p75), 1);
}

TEST(Quantiles, ANaNMakesAllNaN) {
  const auto given = measure(*statistic_of("quantiles"), Tensor<float>{Dtype::f32, {1, NAN, 2}});
  EXPECT_TRUE(std::isnan(given.at(SparseStat::p05)));
  EXPECT_TRUE(measure(*statistic_of("quantiles"), Tensor<float>{Dtype::f32, {}}).empty());
}

}  // namespace
}  // namespace tocsin::collectors
