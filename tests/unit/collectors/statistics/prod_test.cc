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

TEST(Prod, IsTheProductAndPropagates) {
  const auto prod = [](const Tensor<double>& tensor) {
    return measure(*statistic_of("prod"), tensor).at(SparseStat::prod);
  };
  EXPECT_EQ(prod({Dtype::f64, {2, -3, 4}}), -24);
  EXPECT_EQ(prod({Dtype::f64, {}}), 1);
  EXPECT_EQ(prod({Dtype::f64, {1e200, -1e200}}), -INFINITY);
  EXPECT_TRUE(std::isnan(prod({Dtype::f64, {0, INFINITY}})));
}

}  // namespace
}  // namespace tocsin::collectors
