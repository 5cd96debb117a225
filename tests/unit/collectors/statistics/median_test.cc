#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/statistic_harness.h"

namespace tocsin::collectors {
namespace {

using core::Dtype;
using core::SparseStat;
using testing_support::measure;
using testing_support::statistic_of;
using testing_support::Tensor;

double median(std::vector<double> values) {
  return measure(*statistic_of("median"), Tensor<double>{Dtype::f64, std::move(values)})
      .at(SparseStat::median);
}

TEST(Median, IsTheMiddleOrTheMeanOfTheTwo) {
  EXPECT_EQ(median({9, 1, 5}), 5);
  EXPECT_EQ(median({9, 1, 5, 2}), 3.5);
  EXPECT_EQ(median({7}), 7);
}

TEST(Median, GoesByOrderWithInfinitiesAndNotWithNaN) {
  EXPECT_EQ(median({-INFINITY, 1, INFINITY}), 1);
  EXPECT_EQ(median({INFINITY, INFINITY, 1}), INFINITY);
  EXPECT_TRUE(std::isnan(median({1, NAN, 2})));
}

}  // namespace
}  // namespace tocsin::collectors
