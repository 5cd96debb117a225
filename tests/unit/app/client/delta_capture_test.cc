#include "app/client/delta_capture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tocsin::app::client {
namespace {

using core::Dtype;

TEST(DeltaCaptureTest, TheDistanceIsToTheValueCapturedLast) {
  DeltaCapture deltas(1000);
  std::vector<float> values{3, 4};
  deltas.admit({{1, 8, "w"}});
  EXPECT_FALSE(deltas.update(1, Dtype::f32, values.data(), 2, 10));
  values = {3, 6};
  const auto delta = deltas.update(1, Dtype::f32, values.data(), 2, 20);
  ASSERT_TRUE(delta);
  EXPECT_THAT(*delta, ::testing::ElementsAre(2, 5, 10));
  EXPECT_EQ(deltas.update(1, Dtype::f32, values.data(), 2, 30)->at(2), 20);
  EXPECT_FALSE(deltas.update(1, Dtype::f32, values.data(), 1, 40));  // another size starts again
}

TEST(DeltaCaptureTest, WhenMemoryEndsTheLargestAreLeftOutAndAskedForOnce) {
  DeltaCapture deltas(20);
  EXPECT_TRUE(deltas.is_new(1));
  deltas.admit({{1, 16, "large"}, {2, 8, "small"}, {3, 0, "empty"}});
  EXPECT_THAT(deltas.left_out(), ::testing::ElementsAre("large"));
  EXPECT_FALSE(deltas.is_new(1));
  EXPECT_FALSE(deltas.is_new(2));
  EXPECT_EQ(deltas.used_bytes(), 8U);
  const float value = 1;
  EXPECT_FALSE(deltas.update(1, Dtype::f32, &value, 1, 0));
}

}  // namespace
}  // namespace tocsin::app::client
