#include "collectors/hook/capture/governor.h"

#include <gtest/gtest.h>

namespace tocsin::hook {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// `steps` steps of 10 ms; every sampled one costs `cost`.
void train(Governor& governor, int steps, core::Duration cost) {
  for (int step = 0; step < steps; ++step) {
    if (step % (10 * governor.stretch().costly) == 0) governor.sampled(cost);
    governor.step(milliseconds(10), 10);
  }
}

TEST(Governor, LeavesTheGridAloneBelowItsShare) {
  Governor governor(0.01);
  train(governor, 1000, microseconds(900));
  EXPECT_EQ(governor.stretch().costly, 1);
  EXPECT_NEAR(governor.share(), 0.009, 0.0005);
}

TEST(Governor, WidensTheGridUntilTheShareFits) {
  Governor governor(0.01);
  train(governor, 20'000, milliseconds(7));
  EXPECT_EQ(governor.stretch().costly, 8);
  EXPECT_LE(governor.share(), 0.01);
}

TEST(Governor, NarrowsTheGridAgainWhenThereIsRoom) {
  Governor governor(0.01);
  train(governor, 20'000, milliseconds(7));
  train(governor, 20'000, microseconds(10));
  EXPECT_EQ(governor.stretch().costly, 1);
}

TEST(Governor, FirstWindowIsWarmUp) {
  Governor governor(0.01);
  train(governor, 10, milliseconds(500));
  EXPECT_EQ(governor.stretch().costly, 1);
}

TEST(Governor, StepsOfMicrosecondsCountAsFiveMilliseconds) {
  Governor governor(0.01);
  for (int step = 0; step < 1000; ++step) {
    if (step % 10 == 0) governor.sampled(microseconds(400));
    governor.step(microseconds(200), 10);
  }
  EXPECT_EQ(governor.stretch().costly, 1);
}

// As above, with both kinds at each of their own sampled steps.
void train_both(Governor& governor, int steps, core::Duration costly, core::Duration small) {
  for (int step = 0; step < steps; ++step) {
    if (step % (10 * governor.stretch().costly) == 0) governor.sampled(costly);
    if (step % (10 * governor.stretch().small) == 0) {
      governor.sampled(small, Governor::Kind::small);
    }
    governor.step(milliseconds(10), 10);
  }
}

TEST(Governor, WhatCostsNextToNothingKeepsItsGridWhateverTheRestCosts) {
  Governor governor(0.01);
  train_both(governor, 20'000, milliseconds(50), microseconds(400));
  EXPECT_EQ(governor.stretch().small, 1);
  EXPECT_GE(governor.stretch().costly, 64);
  EXPECT_LE(governor.share(), 0.01);
}

TEST(Governor, FirstSamplesOfAShortRunAreLeftAlone) {
  Governor governor(0.01);
  train_both(governor, 10 * (Governor::kFirstSamples - 1), microseconds(10), milliseconds(50));
  EXPECT_EQ(governor.stretch().small, 1);
  EXPECT_EQ(governor.stretch().costly, 1) << "nobody else pays for them";
}

TEST(Governor, WhatTurnsOutToBeCostlyIsThinnedToHalfOfTheLimit) {
  Governor governor(0.01);
  train_both(governor, 40'000, milliseconds(50), milliseconds(50));
  EXPECT_GT(governor.stretch().small, 1);
  EXPECT_LE(governor.share(), 0.011);
}

}  // namespace
}  // namespace tocsin::hook
