#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "tests/support/statistic_harness.h"

namespace tocsin::collectors {
namespace {

using core::Dtype;
using core::SparseStat;
using testing_support::measure;
using testing_support::statistic_of;
using testing_support::Tensor;

constexpr float kInfinite = std::numeric_limits<float>::infinity();

TEST(FirstBadIndex, IsTheFirstNaNOrInfinity) {
  const auto statistic = statistic_of("first_bad_index");
  const auto given = measure(*statistic, Tensor<float>{Dtype::f32, {1, 2, -kInfinite, NAN}});
  EXPECT_EQ(given.at(SparseStat::first_bad_index), 2);
  const auto half = measure(*statistic, Tensor<std::uint16_t>{Dtype::f16, {0, 0x7e00}});
  EXPECT_EQ(half.at(SparseStat::first_bad_index), 1);
}

TEST(FirstBadIndex, IsNotGivenWhereThereIsNoneOrTheOrderIsAnother) {
  const auto statistic = statistic_of("first_bad_index");
  EXPECT_TRUE(measure(*statistic, Tensor<float>{Dtype::f32, {1, 2}}).empty());
  EXPECT_TRUE(measure(*statistic, Tensor<std::int32_t>{Dtype::i32, {1, 2}}).empty());
  Tensor<float> permuted{Dtype::f32, {1, NAN}};
  permuted.row_major = false;
  EXPECT_TRUE(measure(*statistic, permuted).empty());
}

}  // namespace
}  // namespace tocsin::collectors
