#include <gmock/gmock.h>

#include <cmath>

#include "tests/support/statistic_harness.h"

namespace tocsin::collectors {
namespace {

using core::Dtype;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing_support::measure;
using testing_support::statistic_of;
using testing_support::Tensor;

ExponentialHistogram of(std::vector<double> values) {
  return measure(*statistic_of("histogram"), Tensor<double>{Dtype::f64, std::move(values)})
      .buckets.value();
}

TEST(Histogram, APowerOfTwoEndsItsBucket) {
  // 2^(i/8) < |x| <= 2^((i+1)/8): 1 is in −1, what is just above in 0, 2 in 7.
  const auto given = of({1, std::nextafter(1, 2), 2, -2});
  EXPECT_EQ(given.positive_offset, -1);
  EXPECT_THAT(given.positive, ElementsAre(1, 1, 0, 0, 0, 0, 0, 0, 1));
  EXPECT_EQ(given.negative_offset, 7);
  EXPECT_THAT(given.negative, ElementsAre(1));
}

TEST(Histogram, EveryBucketHoldsWhatItsBoundsSay) {
  for (int i = -40; i < 40; ++i) {
    const double middle = std::exp2((i + 0.5) / 8);
    EXPECT_EQ(of({middle}).positive_offset, i) << middle;
  }
}

TEST(Histogram, TheEndsOfTheTypeHaveBucketsAndZeroAndInfinityHaveNone) {
  const auto given = of({5e-324, 1.7976931348623157e308, 0, -0.0, INFINITY, NAN});
  EXPECT_EQ(given.positive_offset, -1074 * 8 - 1);
  EXPECT_EQ(given.positive.front(), 1U);
  EXPECT_EQ(given.positive_offset + static_cast<int>(given.positive.size()), 8192);
  EXPECT_EQ(given.positive.back(), 1U);
  EXPECT_THAT(given.negative, IsEmpty());
}

}  // namespace
}  // namespace tocsin::collectors
