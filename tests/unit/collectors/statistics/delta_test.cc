#include <gmock/gmock.h>

#include "tests/support/statistic_harness.h"

namespace tocsin::collectors {
namespace {

using core::Dtype;
using core::SparseStat;
using testing_support::as_number;
using testing_support::measure;
using testing_support::statistic_that_gives;
using Floats = testing_support::Tensor<float>;

TEST(Delta, TheDistanceIsToTheValueCapturedLast) {
  const auto delta = statistic_that_gives(SparseStat::delta_l2, {1000});
  delta->admit({{1, 8, "w"}});
  EXPECT_TRUE(measure(*delta, Floats{Dtype::f32, {3, 4}}, 10).empty());
  const auto given = measure(*delta, Floats{Dtype::f32, {3, 6}}, 20);
  EXPECT_EQ(given.size(), 3U);
  EXPECT_EQ(as_number(given.at(SparseStat::delta_l2)), 2);
  EXPECT_EQ(as_number(given.at(SparseStat::prev_l2)), 5);
  EXPECT_EQ(as_number(given.at(SparseStat::delta_from_step)), 10);
  const auto still = measure(*delta, Floats{Dtype::f32, {3, 6}}, 30);
  EXPECT_EQ(as_number(still.at(SparseStat::delta_from_step)), 20);
  EXPECT_TRUE(measure(*delta, Floats{Dtype::f32, {3}}, 40).empty()) << "another size starts again";
}

TEST(Delta, WhenMemoryEndsTheLargestAreLeftOutAndAskedForOnce) {
  const auto delta = statistic_that_gives(SparseStat::delta_l2, {20});
  EXPECT_TRUE(delta->is_new(1));
  delta->admit({{1, 16, "large"}, {2, 8, "small"}, {3, 0, "empty"}});
  EXPECT_THAT(delta->left_out(), ::testing::ElementsAre("large"));
  EXPECT_FALSE(delta->is_new(1));
  EXPECT_FALSE(delta->is_new(2));
  EXPECT_EQ(delta->kept_bytes(), 8U);
  EXPECT_TRUE(measure(*delta, Floats{Dtype::f32, {1}}).empty());
}

}  // namespace
}  // namespace tocsin::collectors
