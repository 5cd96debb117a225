#include "collectors/hook/capture/capture_control.h"

#include <gtest/gtest.h>

#include "core/identity.h"
#include "core/json.h"
#include "tests/unit/collectors/hook/fixture.h"

namespace tocsin::hook {
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

TEST_F(CaptureControlTest, APauseEndsAllCapturesOfTensorsUntilItIsTakenBack) {
  auto pause = command(R"({"version": "v1", "pause": true})");
  pause.action = "capture/pause";
  auto dense = command(R"({"plans": {"every": "1 step", "collections": ["gradients"]}})");
  control_.ask(std::move(dense));
  next();
  EXPECT_TRUE(control_.wants(0, steps_));
  control_.ask(std::move(pause));
  const CaptureChange change = next();
  ASSERT_EQ(change.answers.size(), 1U);
  EXPECT_EQ(change.answers[0].phase, "applied");
  EXPECT_TRUE(control_.paused());
  for (int i = 0; i < 8; ++i) {
    EXPECT_FALSE(control_.wants(0, steps_));
    EXPECT_FALSE(control_.wants_at(0, 2, steps_));
    EXPECT_FALSE(control_.may_be_due(steps_));
    next();
  }
  EXPECT_TRUE(control_.scalars_due(2)) << "scalars go on";
  control_.withdraw("capture/pause");
  next();
  EXPECT_FALSE(control_.paused());
  EXPECT_TRUE(control_.may_be_due(steps_));
  EXPECT_TRUE(control_.wants(0, steps_)) << "what another has asked for holds again";
}

TEST_F(CaptureControlTest, APauseOfSoManyStepsEndsByItself) {
  control_.ask(command(R"({"pause": true, "until_step": 3})"));
  EXPECT_EQ(next().answers.size(), 1U);
  EXPECT_TRUE(control_.paused());
  next();
  const CaptureChange over = next();
  ASSERT_EQ(over.answers.size(), 1U);
  EXPECT_EQ(over.answers[0].phase, "ended");
  EXPECT_FALSE(control_.paused());
}

TEST_F(CaptureControlTest, ACommandTakesEffectAtItsStepAndEndsAtItsStep) {
  control_.ask(command(R"({"version": "v1", "not_before_step": 2, "until_step": 4,
                           "plans": {"every": "1 step", "collections": ["gradients"]}})"));
  EXPECT_TRUE(next().answers.empty());
  const CaptureChange applied = next();
  ASSERT_EQ(applied.answers.size(), 1U);
  EXPECT_TRUE(applied.plan);
  EXPECT_EQ(applied.answers[0].phase, "applied");
  EXPECT_EQ(applied.answers[0].revision, 3U);
  EXPECT_EQ(applied.answers[0].version, "v1");
  EXPECT_EQ(applied.answers[0].effective_step, 2);
  EXPECT_TRUE(control_.wants(0, steps_));
  next();
  EXPECT_TRUE(control_.wants(0, steps_));
  const CaptureChange over = next();
  EXPECT_TRUE(over.plan);
  ASSERT_EQ(over.answers.size(), 1U);
  EXPECT_EQ(over.answers[0].phase, "ended");
  next();
  EXPECT_FALSE(control_.wants(0, steps_));  // step 5: the own grid again
}

TEST_F(CaptureControlTest, WhatCannotBeGivenIsRefusedByName) {
  control_.ask(command(R"({"plans": {"collections": ["nobody_knows"]}})"));
  const CaptureChange refused = next();
  ASSERT_EQ(refused.answers.size(), 1U);
  EXPECT_EQ(refused.answers[0].phase, "refused");
  EXPECT_EQ(refused.answers[0].reason, "unsupported: nobody_knows");
}

TEST_F(CaptureControlTest, AWithdrawnCommandLeavesTheOwnPlan) {
  control_.ask(command(R"({"plans": {"every": "1 step", "collections": ["gradients"]}})"));
  next();
  EXPECT_TRUE(control_.wants(0, steps_));
  control_.withdraw("capture");
  EXPECT_TRUE(next().plan);
  EXPECT_FALSE(control_.wants(0, steps_));
}

// Each asker has a slot of its own: what is captured is the union, and each ends by itself.
TEST_F(CaptureControlTest, SeveralAskersAreUnitedAndEndApart) {
  const auto ask = [&](const char* slot, const char* args) {
    core::Command one = command(args);
    one.action = slot;
    control_.ask(std::move(one));
  };
  const auto wants = [&](const char* collection) {
    return control_.wants(control_.collection(collection), steps_);
  };
  next();  // step 1: off the client's own grid of 4 steps, as every step below
  ask("capture", R"({"plans": {"collections": {"weights": {"every": "1 step"}}}})");
  ask("capture/mine", R"({"until_step": 7, "plans": {"collections":
      {"gradients": {"every": "1 step"}, "weights": {"every": "3 steps"}}}})");
  ask("capture/other", R"({"plans": {"collections": {"biases": {"every": "1 step"},
      "nobody_knows": {}}}})");
  const CaptureChange change = next();  // step 2
  ASSERT_EQ(change.answers.size(), 3U);
  EXPECT_EQ(change.answers[0].action, "capture");
  EXPECT_EQ(change.answers[1].action, "capture/mine");
  EXPECT_EQ(change.answers[1].phase, "applied");
  EXPECT_EQ(change.answers[2].reason, "without nobody_knows");
  EXPECT_TRUE(wants("weights") && wants("gradients") && wants("biases"));
  control_.withdraw("capture/other");
  next();  // step 3
  EXPECT_TRUE(wants("weights") && wants("gradients"));
  EXPECT_FALSE(wants("biases"));
  control_.withdraw("capture");
  next();
  next();  // step 5: weights by `mine` alone, at multiples of 3
  EXPECT_FALSE(wants("weights"));
  EXPECT_TRUE(wants("gradients"));
  next();  // step 6
  EXPECT_TRUE(wants("weights"));
  const CaptureChange over = next();  // step 7
  ASSERT_EQ(over.answers.size(), 1U);
  EXPECT_EQ(over.answers[0].action, "capture/mine");
  EXPECT_EQ(over.answers[0].phase, "ended");
  EXPECT_FALSE(wants("gradients") || wants("weights"));
}

TEST_F(CaptureControlTest, ARefusedAskerTakesNothingFromTheOthers) {
  control_.ask(command(R"({"plans": {"every": "1 step", "collections": ["gradients"]}})"));
  next();
  core::Command bad = command(R"({"plans": {"collections": ["nobody_knows"]}})");
  bad.action = "capture/mine";
  control_.ask(bad);
  EXPECT_EQ(next().answers.at(0).phase, "refused");
  EXPECT_TRUE(control_.wants(0, steps_));
  bad.action = "capture";  // neither does a newer command that is none
  control_.ask(bad);
  EXPECT_EQ(next().answers.at(0).phase, "refused");
  EXPECT_TRUE(control_.wants(0, steps_));
}

}  // namespace
}  // namespace tocsin::hook
