#include <gmock/gmock.h>

#include <cmath>

#include "tests/support/statistic_harness.h"

namespace tocsin::collectors {
namespace {

using core::Dtype;
using core::SparseStat;
using testing_support::measure;
using testing_support::statistic_of;
using Floats = testing_support::Tensor<float>;

TEST(Delta, TheDistanceIsToTheValueCapturedLast) {
  const auto delta = statistic_of("delta", {}, {1000});
  delta->admit({{1, 8, "w"}});
  EXPECT_TRUE(measure(*delta, Floats{Dtype::f32, {3, 4}}, 10).empty());
  const auto given = measure(*delta, Floats{Dtype::f32, {3, 6}}, 20);
  EXPECT_EQ(given.numbers.size(), 4U);
  EXPECT_EQ(given.at(SparseStat::delta_l2), 2);
  EXPECT_EQ(given.at(SparseStat::prev_l2), 5);
  EXPECT_EQ(given.at(SparseStat::delta_from_step), 10);
  const auto still = measure(*delta, Floats{Dtype::f32, {3, 6}}, 30);
  EXPECT_EQ(still.at(SparseStat::delta_from_step), 20);
  EXPECT_TRUE(measure(*delta, Floats{Dtype::f32, {3}}, 40).empty()) << "another size starts again";
}

TEST(Delta, TheLargestMoveIsOfAllBlocksAndNaNStays) {
  const auto delta = statistic_of("delta");
  std::vector<float> before(40000, 1.F);
  delta->admit({{1, 4 * before.size(), "w"}});
  measure(*delta, Floats{Dtype::f32, before}, 1);
  std::vector<float> now = before;
  now[3] = 0.5F;
  now[39999] = 9.F;
  EXPECT_EQ(measure(*delta, Floats{Dtype::f32, now}, 2).at(SparseStat::delta_max_abs), 8);
  now[3] = std::nanf("");
  EXPECT_TRUE(
      std::isnan(measure(*delta, Floats{Dtype::f32, now}, 3).at(SparseStat::delta_max_abs)));
}

TEST(Delta, WhenMemoryEndsTheLargestAreLeftOutAndAskedForOnce) {
  const auto delta = statistic_of("delta", {}, {20});
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
