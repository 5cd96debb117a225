#include <gmock/gmock.h>

#include <complex>
#include <limits>

#include "tests/support/statistic_harness.h"

namespace tocsin::collectors {
namespace {

using core::Dtype;
using core::SparseStat;
using testing_support::measure;
using testing_support::statistic_of;
using testing_support::Tensor;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(AtLeast, TheBoundAndInfinitiesCountAndNaNDoesNot) {
  const auto given =
      measure(*statistic_of("at_least", {3}),
              Tensor<float>{Dtype::f32, {3, -3, 2.99F, kInfinity, -kInfinity, NAN, 0}});
  EXPECT_EQ(given.at(SparseStat::abs_ge_count), 4);
  EXPECT_THAT(given.parameters.at(SparseStat::abs_ge_count), ::testing::ElementsAre(3));
}

TEST(AtLeast, OfEveryRealTypeAndOfManyElements) {
  const auto statistic = statistic_of("at_least", {2});
  const std::vector<std::int8_t> bytes(5000, -2);
  EXPECT_EQ(measure(*statistic, Tensor<std::int8_t>{Dtype::i8, bytes}).at(SparseStat::abs_ge_count),
            5000);
  const Tensor<std::uint16_t> halves{Dtype::f16, {0x4000, 0xC000, 0x3C00}};  // 2, −2, 1
  EXPECT_EQ(measure(*statistic, halves).at(SparseStat::abs_ge_count), 2);
  EXPECT_TRUE(measure(*statistic, Tensor<std::complex<float>>{Dtype::c64, {{3, 3}}}).empty());
}

}  // namespace
}  // namespace tocsin::collectors
