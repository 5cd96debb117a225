#include <gmock/gmock.h>

#include <cmath>

#include "tests/support/statistic_harness.h"

namespace tocsin::collectors {
namespace {

using core::Dtype;
using core::VectorStat;
using ::testing::ElementsAre;
using testing_support::measure;
using testing_support::statistic_of;
using testing_support::Tensor;

TEST(Channels, SumsRunOverBatchAndSpace) {
  // Two images of two channels with 1 × 2 pixels.
  const Tensor<std::uint8_t> images{Dtype::u8, {1, 2, 10, 20, 3, 4, 30, 250}, {2, 2, 1, 2}};
  const auto given = measure(*statistic_of("channels"), images);
  EXPECT_THAT(given.at(VectorStat::channel_sum), ElementsAre(10, 310));
  EXPECT_THAT(given.at(VectorStat::channel_sumsq), ElementsAre(30, 100 + 400 + 900 + 62500));
  EXPECT_THAT(given.at(VectorStat::channel_count), ElementsAre(4, 4));
}

TEST(Channels, WhatIsNotFiniteIsLeftOut) {
  const Tensor<float> images{Dtype::f32, {1, NAN, -INFINITY, 4}, {1, 2, 1, 2}};
  const auto given = measure(*statistic_of("channels"), images);
  EXPECT_THAT(given.at(VectorStat::channel_sum), ElementsAre(1, 4));
  EXPECT_THAT(given.at(VectorStat::channel_count), ElementsAre(1, 1));
}

TEST(Channels, OfLargeImages) {
  std::vector<float> values(2 * 2 * 1500, 2);
  for (std::size_t i = 1500; i < 3000; ++i)
    values[i] = -1;  // the second channel of the first image
  const auto given =
      measure(*statistic_of("channels"), Tensor<float>{Dtype::f32, values, {2, 2, 30, 50}});
  EXPECT_THAT(given.at(VectorStat::channel_sum), ElementsAre(6000, 1500));
  EXPECT_THAT(given.at(VectorStat::channel_count), ElementsAre(3000, 3000));
}

TEST(Channels, ThreeDimensionsAreOneChannelAndTwoAreNoImage) {
  const auto statistic = statistic_of("channels");
  const Tensor<float> grey{Dtype::f32, {1, 2, 3, 4}, {1, 2, 2}};
  EXPECT_THAT(measure(*statistic, grey).at(VectorStat::channel_sum), ElementsAre(10));
  EXPECT_TRUE(measure(*statistic, Tensor<float>{Dtype::f32, {1, 2, 3, 4}, {2, 2}}).empty());
}

}  // namespace
}  // namespace tocsin::collectors
