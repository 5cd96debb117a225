#include "app/client/governor.h"

#include <gtest/gtest.h>

namespace tocsin::app::client {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// `steps` steps of 10 ms; every sampled one costs `cost`.
void train(Governor& governor, int steps, core::Duration cost) {
  for (int step = 0; step < steps; ++step) {
    if (step % (10 * governor.stretch()) == 0) governor.sampled(cost);
    governor.step(milliseconds(10), 10);
  }
}

TEST(Governor, LeavesTheGridAloneBelowItsShare) {
  Governor governor(0.01);
  train(governor, 1000, microseconds(900));
  EXPECT_EQ(governor.stretch(), 1);
  EXPECT_NEAR(governor.share(), 0.009, 0.0005);
}

TEST(Governor, WidensTheGridUntilTheShareFits) {
  Governor governor(0.01);
  train(governor, 20'000, milliseconds(7));
  EXPECT_EQ(governor.stretch(), 8);
  EXPECT_LE(governor.share(), 0.01);
}

TEST(Governor, NarrowsTheGridAgainWhenThereIsRoom) {
  Governor governor(0.01);
  train(governor, 20'000, milliseconds(7));
  train(governor, 20'000, microseconds(10));
  EXPECT_EQ(governor.stretch(), 1);
}

TEST(Governor, FirstWindowIsWarmUp) {
  Governor governor(0.01);
  train(governor, 10, milliseconds(500));
  EXPECT_EQ(governor.stretch(), 1);
}

TEST(Governor, StepsOfMicrosecondsCountAsFiveMilliseconds) {
  Governor governor(0.01);
  for (int step = 0; step < 1000; ++step) {
    if (step % 10 == 0) governor.sampled(microseconds(400));
    governor.step(microseconds(200), 10);
  }
  EXPECT_EQ(governor.stretch(), 1);
}

}  // namespace
}  // namespace tocsin::app::client
