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
double abs_prod(Dtype dtype, std::vector<T> values) {
  return measure(*statistic_of("abs_prod"), Tensor<T>{dtype, std::move(values)})
      .at(SparseStat::abs_prod);
}

TEST(AbsProd, IsTheProductOfMagnitudesAndPropagates) {
  EXPECT_EQ(abs_prod<double>(Dtype::f64, {2, -3, 4}), 24);
  EXPECT_EQ(abs_prod<std::complex<float>>(Dtype::c64, {{3, 4}, {0, -2}}), 10);
  EXPECT_EQ(abs_prod<double>(Dtype::f64, {}), 1);
  EXPECT_EQ(abs_prod<double>(Dtype::f64, {1e200, -1e200}), INFINITY);
  EXPECT_TRUE(std::isnan(abs_prod<double>(Dtype::f64, {0, -INFINITY})));
  EXPECT_TRUE(std::isnan(abs_prod<std::complex<double>>(Dtype::c128, {{INFINITY, NAN}})));
}

TEST(AbsProd, TextHasNone) {
  EXPECT_TRUE(measure(*statistic_of("abs_prod"), Tensor<char>{Dtype::text, {'a'}}).empty());
}

}  // namespace
}  // namespace tocsin::collectors
