#include <gtest/gtest.h>

#include <cmath>
#include <complex>

#include "tests/support/statistic_harness.h"

namespace tocsin::collectors {
namespace {

using core::Dtype;
using core::SparseStat;
using testing_support::Given;
using testing_support::measure;
using testing_support::statistic_of;
using testing_support::Tensor;

template <typename T>
Given abs_median(Dtype dtype, std::vector<T> values) {
  return measure(*statistic_of("abs_median"), Tensor<T>{dtype, std::move(values)});
}

double middle(std::vector<double> values) {
  return abs_median<double>(Dtype::f64, std::move(values)).at(SparseStat::abs_median);
}

TEST(AbsMedian, IsTheMiddleMagnitudeOrTheMeanOfTheTwo) {
  EXPECT_EQ(middle({-9, 1, -5}), 5);  // the median is -5
  EXPECT_EQ(middle({-9, 1, -5, 2}), 3.5);
  EXPECT_EQ(middle({-INFINITY, -1, 3}), 3);
  EXPECT_TRUE(std::isnan(middle({1, NAN, 2})));
  EXPECT_EQ(abs_median<std::complex<double>>(Dtype::c128, {{3, 4}, {0, 1}, {6, 8}})
                .at(SparseStat::abs_median),
            5);
}

TEST(AbsMedian, OfALargeTensorIsThatOfSomeElements) {
  std::vector<float> values(300'000);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = (i % 2 == 0 ? -1.0F : 1.0F) * static_cast<float>(i);
  }
  const Given given = abs_median(Dtype::f32, std::move(values));
  EXPECT_TRUE(given.is_approximate);
  EXPECT_NEAR(given.at(SparseStat::abs_median), 150'000, 1'500);
}

TEST(AbsMedian, NothingHasNone) {
  EXPECT_TRUE(abs_median<double>(Dtype::f64, {}).empty());
  EXPECT_TRUE(abs_median<char>(Dtype::text, {'a'}).empty());
}

}  // namespace
}  // namespace tocsin::collectors
