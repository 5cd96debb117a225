#include <gtest/gtest.h>

#include <cmath>
#include <complex>

#include "tests/support/statistic_harness.h"

namespace tocsin::collectors {
namespace {

using core::Dtype;
using core::SparseStat;
using testing_support::measure;
using testing_support::statistic_of;
using testing_support::Tensor;

template <typename T>
double abs_min(Dtype dtype, std::vector<T> values) {
  return measure(*statistic_of("abs_min"), Tensor<T>{dtype, std::move(values)})
      .at(SparseStat::abs_min);
}

TEST(AbsMin, IsTheSmallestMagnitudeOfBothSigns) {
  EXPECT_EQ(abs_min<double>(Dtype::f64, {-3, 2, -0.5, 7}), 0.5);
  EXPECT_EQ(abs_min<std::int8_t>(Dtype::i8, {-128, 100}), 100);
  EXPECT_EQ(abs_min<float>(Dtype::f32, {-3, -0.0F}), 0);
  std::vector<float> many(5000, -8);
  many[4321] = 3;  // in a later block
  EXPECT_EQ(abs_min<float>(Dtype::f32, many), 3);
}

TEST(AbsMin, OfComplexNumbersIsTheSmallestModulus) {
  EXPECT_EQ(abs_min<std::complex<double>>(Dtype::c128, {{3, 4}, {-5, 12}}), 5);
}

TEST(AbsMin, PropagatesNaNAndHasNothingToSayOfNoElements) {
  EXPECT_TRUE(std::isnan(abs_min<double>(Dtype::f64, {0, NAN})));
  EXPECT_EQ(abs_min<double>(Dtype::f64, {-INFINITY, INFINITY}), INFINITY);
  EXPECT_TRUE(measure(*statistic_of("abs_min"), Tensor<double>{Dtype::f64, {}}).empty());
  EXPECT_TRUE(measure(*statistic_of("abs_min"), Tensor<char>{Dtype::text, {'a'}}).empty());
}

}  // namespace
}  // namespace tocsin::collectors
