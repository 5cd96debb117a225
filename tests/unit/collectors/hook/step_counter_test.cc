#include "collectors/hook/capture/step_counter.h"

#include <gtest/gtest.h>

namespace tocsin::hook {
namespace {

using core::Mode;
using std::chrono::seconds;

TEST(StepCounterTest, EachModeCountsItsOwnStepsAndAllCountOne) {
  StepCounter steps({100, seconds(1)});
  EXPECT_EQ(steps.mode(), Mode::train);
  EXPECT_EQ(steps.ended(), 0);
  steps.next({200, seconds(2)});
  steps.next({300, seconds(3)});
  steps.enter(Mode::eval, {400, seconds(4)});
  EXPECT_EQ(steps.ended(), 300);
  EXPECT_EQ(steps.step(), 0);
  steps.next({500, seconds(5)});
  EXPECT_EQ(steps.step(), 1);
  EXPECT_EQ(steps.global_step(), 3);
  EXPECT_EQ(steps.steps(), (StepCounter::Steps{0, 2, 1, 0}));
  EXPECT_EQ(steps.began().wall, 500);
  EXPECT_EQ(steps.began().monotonic, seconds(5));
}

TEST(StepCounterTest, EveryReturnToAModeIsAnotherPass) {
  StepCounter steps({});
  EXPECT_EQ(steps.pass(), 0U);
  steps.enter(Mode::eval, {});
  EXPECT_EQ(steps.pass(), 0U);
  steps.enter(Mode::train, {});
  EXPECT_EQ(steps.pass(), 1U);
  steps.enter(Mode::eval, {});
  EXPECT_EQ(steps.pass(), 1U);
}

TEST(StepCounterTest, TheSameModeAndUnknownOnesAreNotEntered) {
  const StepCounter steps({});
  EXPECT_FALSE(steps.may_enter(Mode::train));
  EXPECT_FALSE(steps.may_enter(static_cast<Mode>(4)));
  EXPECT_TRUE(steps.may_enter(Mode::predict));
}

TEST(StepCounterTest, AStepIsOpenFromItsFirstValueToItsEnd) {
  StepCounter steps({});
  EXPECT_FALSE(steps.open());
  steps.touch();
  EXPECT_TRUE(steps.open());
  steps.next({});
  EXPECT_FALSE(steps.open());
}

TEST(StepCounterTest, AResumedRunGoesOnWhereItWasAndNegativeCountsAreNone) {
  StepCounter steps({});
  steps.resume({0, 40, -3, 2}, 42);
  EXPECT_EQ(steps.step(), 40);
  EXPECT_EQ(steps.global_step(), 42);
  EXPECT_EQ(steps.steps()[2], 0);
}

}  // namespace
}  // namespace tocsin::hook
