#include "app/client/capture_control.h"

#include <gtest/gtest.h>

#include "core/identity.h"
#include "core/json.h"
#include "tests/unit/app/client/fixture.h"

namespace tocsin::app::client {
namespace {

using std::chrono::milliseconds;

class CaptureControlTest : public ::testing::Test {
 protected:
  static core::Command command(const std::string& args) {
    core::Command out;
    out.command_id = "cmd_1";
    out.action = "capture";
    out.revision = 3;
    out.args = core::parse_json(args, 1 << 16).value();
    return out;
  }
  CaptureChange next() {
    control_.step_ends(steps_, clock_.monotonic());
    steps_.next({0, clock_.monotonic()});
    return control_.step_begins(steps_.step());
  }

  ManualClock clock_;
  StepCounter steps_{Moment{0, clock_.monotonic()}};
  CaptureControl control_{make_plan("{every: 4 steps, scalars: 2 steps, collections: [gradients]}"),
                          clock_};
};

TEST_F(CaptureControlTest, CollectionsAreDueOnTheirGridAndUnknownOnesNever) {
  const std::uint64_t gradients = control_.collection("gradients");
  EXPECT_TRUE(control_.wants(0, steps_));
  EXPECT_TRUE(control_.wants(gradients, steps_));
  EXPECT_FALSE(control_.wants(77, steps_));
  next();
  EXPECT_FALSE(control_.wants(0, steps_));
  EXPECT_TRUE(control_.wants_at(gradients, 3, steps_));
  EXPECT_EQ(control_.sampled_steps(), 1U);
}

TEST(CaptureControlGrids, AGridInTimeIsDueOnceAndForAllWhoAskAboutThatStep) {
  ManualClock clock;
  const StepCounter steps{Moment{0, clock.monotonic()}};
  CaptureControl control{make_plan("{every: 10s, collections: [gradients, weights]}"), clock};
  const std::uint64_t gradients = control.collection("gradients");
  EXPECT_TRUE(control.wants_at(0, 2, steps));
  EXPECT_TRUE(control.wants_at(gradients, 2, steps));
  EXPECT_FALSE(control.wants_at(gradients, 3, steps));
}

TEST_F(CaptureControlTest, ScalarsHaveAGridOfTheirOwn) {
  EXPECT_TRUE(control_.scalars_due(0));
  EXPECT_FALSE(control_.scalars_due(1));
  EXPECT_TRUE(control_.scalars_due(2));
}

TEST_F(CaptureControlTest, FromAYesOnTheCallerWorksForUs) {
  ASSERT_TRUE(control_.wants(0, steps_));
  clock_.advance(milliseconds(3));
  control_.measured(control_.measuring_since());
  EXPECT_EQ(control_.cost(), milliseconds(3));
  control_.measured(control_.measuring_since());
  EXPECT_EQ(control_.cost(), milliseconds(3));
}

TEST_F(CaptureControlTest, ACommandTakesEffectAtItsStepAndEndsAtItsStep) {
  control_.ask(command(R"({"version": "v1", "not_before_step": 2, "until_step": 4,
                           "plans": {"every": "1 step", "collections": ["gradients"]}})"));
  EXPECT_FALSE(next().answer);
  const CaptureChange applied = next();
  ASSERT_TRUE(applied.answer);
  EXPECT_TRUE(applied.plan);
  EXPECT_EQ(applied.answer->phase, "applied");
  EXPECT_EQ(applied.answer->revision, 3U);
  EXPECT_EQ(applied.answer->version, "v1");
  EXPECT_EQ(applied.answer->effective_step, 2);
  EXPECT_TRUE(control_.wants(0, steps_));
  next();
  EXPECT_TRUE(control_.wants(0, steps_));
  EXPECT_TRUE(next().plan);
  next();
  EXPECT_FALSE(control_.wants(0, steps_));  // step 5: the own grid again
}

TEST_F(CaptureControlTest, WhatCannotBeGivenIsRefusedByName) {
  control_.ask(command(R"({"plans": {"collections": ["nobody_knows"]}})"));
  const CaptureChange refused = next();
  ASSERT_TRUE(refused.answer);
  EXPECT_EQ(refused.answer->phase, "refused");
  EXPECT_EQ(refused.answer->reason, "unsupported: nobody_knows");
}

TEST_F(CaptureControlTest, AWithdrawnCommandLeavesTheOwnPlan) {
  control_.ask(command(R"({"plans": {"every": "1 step", "collections": ["gradients"]}})"));
  next();
  EXPECT_TRUE(control_.wants(0, steps_));
  control_.withdraw();
  EXPECT_TRUE(next().plan);
  EXPECT_FALSE(control_.wants(0, steps_));
}

}  // namespace
}  // namespace tocsin::app::client
