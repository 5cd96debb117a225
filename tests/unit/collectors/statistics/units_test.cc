#include <gmock/gmock.h>

#include "tests/support/statistic_harness.h"

namespace tocsin::collectors {
namespace {

using core::Dtype;
using core::SparseStat;
using testing_support::measure;
using testing_support::statistic_of;
using Floats = testing_support::Tensor<float>;

TEST(Units, OfAMatrixTheColumns) {
  // Four samples of three units: active in 0, 1 and 4 of them.
  const Floats batch{Dtype::f32, {0, 1, 5, 0, 0, 5, -1, 0, 5, 0, -2, 5}, {4, 3}};
  const auto some = measure(*statistic_of("units", {26}), batch);
  EXPECT_EQ(some.at(SparseStat::unit_count), 3);
  EXPECT_EQ(some.at(SparseStat::unit_inactive_count), 2);
  EXPECT_THAT(some.parameters.at(SparseStat::unit_inactive_count), ::testing::ElementsAre(26));
  EXPECT_TRUE(some.parameters.at(SparseStat::unit_count).empty());
  // A quarter is not less than 25 %.
  EXPECT_EQ(measure(*statistic_of("units", {25}), batch).at(SparseStat::unit_inactive_count), 1);
  EXPECT_EQ(measure(*statistic_of("units", {0}), batch).at(SparseStat::unit_inactive_count), 0);
}

TEST(Units, OfImagesTheChannelsOverBatchAndSpace) {
  // Two images, two channels, 2 × 1 pixels: the first channel is positive once in four.
  const Floats batch{Dtype::f32, {0, 0, 1, 1, 0, 3, 1, 1}, {2, 2, 2, 1}};
  const auto given = measure(*statistic_of("units", {30}), batch);
  EXPECT_EQ(given.at(SparseStat::unit_count), 2);
  EXPECT_EQ(given.at(SparseStat::unit_inactive_count), 1);
}

TEST(Units, OneDimensionIsOneUnitAndASingleValueIsNone) {
  const auto statistic = statistic_of("units", {1});
  EXPECT_EQ(measure(*statistic, Floats{Dtype::f32, {0, 0, 0}}).at(SparseStat::unit_inactive_count),
            1);
  const float value = 0;
  TensorSample single;
  single.dtype = Dtype::f32;
  single.data = &value;
  single.count = 1;
  testing_support::Given given;
  statistic->measure(single, given);
  EXPECT_TRUE(given.empty());
}

TEST(Units, ManyBlocksAreOneBatch) {
  std::vector<float> values(3000 * 7);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 7 == 3 ? 0 : 1;
  const auto given = measure(*statistic_of("units", {1}), Floats{Dtype::f32, values, {3000, 7}});
  EXPECT_EQ(given.at(SparseStat::unit_inactive_count), 1);
}

TEST(Units, ARunOfAChannelMayBeLongerThanABlock) {
  // Two images, three channels of 50 × 60 pixels; the last is positive in one pixel of each.
  std::vector<float> values(2 * 3 * 3000, 1);
  for (const std::size_t image : {0, 1}) {
    for (std::size_t i = 0; i < 3000; ++i) values[(3 * image + 2) * 3000 + i] = i == 1500 ? 1 : 0;
  }
  const Floats batch{Dtype::f32, values, {2, 3, 50, 60}};
  EXPECT_EQ(measure(*statistic_of("units", {1}), batch).at(SparseStat::unit_inactive_count), 1);
  EXPECT_EQ(measure(*statistic_of("units", {0.01}), batch).at(SparseStat::unit_inactive_count), 0);
}

TEST(Units, InAnotherOrderNobodyKnowsWhoseTheyAre) {
  Floats permuted{Dtype::f32, {0, 1, 0, 1}, {2, 2}};
  permuted.row_major = false;
  EXPECT_TRUE(measure(*statistic_of("units", {1}), permuted).empty());
}

}  // namespace
}  // namespace tocsin::collectors
