#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/rules/rule_bench.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;

std::vector<BenchValue> training(double value, const std::string& name = "training") {
  return {{name, value, Role::metric}};
}

TEST(ModeMismatch, ThreeTrainStepsInTheEvaluationState) {
  SeriesBench rule("mode_mismatch");
  EXPECT_EQ(rule.step(Mode::train, 0, training(0)), "training: ok");
  EXPECT_EQ(rule.step(Mode::train, 1, training(0)), "training: ok");
  EXPECT_EQ(rule.step(Mode::train, 2, training(0)), "training: hit eval_state_in_training");
  EXPECT_EQ(rule.told[0].finding.first_step, 0);
  EXPECT_EQ(rule.step(Mode::train, 3, training(1)), "training: ok");
  EXPECT_EQ(rule.step(Mode::train, 4, training(0)), "training: ok") << "the count starts again";
}

TEST(ModeMismatch, OneWorkerOfSeveralIsEnoughInTraining) {
  SeriesBench rule("mode_mismatch", "{steps: 1}");
  EXPECT_EQ(rule.step(Mode::train, 0, training(0.75)), "training: hit eval_state_in_training");
}

TEST(ModeMismatch, AWholePassInTheTrainingState) {
  SeriesBench rule("mode_mismatch");
  EXPECT_EQ(rule.pass(9, training(0)), "training: ok");
  EXPECT_EQ(rule.pass(19, training(0.9)), "training: ok") << "a part of the pass only";
  EXPECT_EQ(rule.pass(29, training(1)), "training: hit train_state_in_evaluation");
  EXPECT_EQ(rule.told[0].finding.observed.value, 1);
}

TEST(ModeMismatch, ModelsAreToldApart) {
  SeriesBench rule("mode_mismatch", "{steps: 2}");
  const std::vector<BenchValue> both{{"generator/training", 1, Role::metric},
                                     {"critic/training", 0, Role::metric},
                                     {"retraining", 0, Role::metric},
                                     {"training_loss", 0, Role::loss}};
  rule.step(Mode::train, 0, both);
  rule.step(Mode::train, 1, both);
  ASSERT_EQ(rule.told.size(), 1U);
  EXPECT_EQ(rule.told[0].metric, "critic/training");
}

TEST(ModeMismatch, WhatIsNoNumberSaysNothing) {
  SeriesBench rule("mode_mismatch", "{steps: 2}");
  rule.step(Mode::train, 0, training(0));
  EXPECT_EQ(rule.step(Mode::train, 1, training(std::nan(""))), "training: insufficient_data");
  EXPECT_EQ(rule.step(Mode::train, 2, training(0)), "training: hit eval_state_in_training");
  EXPECT_EQ(rule.step(Mode::global, 3, training(0)), "") << "without modes there is no mismatch";
  EXPECT_EQ(rule.step(Mode::predict, 3, training(1)), "");
}

// Through the engine: every step of train, and a pass of eval that ends with the next train step.
TEST(ModeMismatch, ReadsTheScalarTraining) {
  RuleHarness rule = RuleHarness::of("mode_mismatch");
  FakeWorker worker;
  rule.feed(worker.dictionary({{core::DictionaryType::scalar, "training", Role::metric}}));
  for (std::int64_t step = 0; step < 4; ++step) {
    rule.feed(worker.scalars(Mode::train, {{"training", step, 0, Role::metric}}));
    rule.feed(worker.step_end(Mode::train, step));
  }
  for (std::int64_t batch = 0; batch < 2; ++batch) {
    rule.feed(worker.scalars(Mode::eval, {{"training", batch, 1, Role::metric}}));
    rule.feed(worker.step_end(Mode::eval, batch));
  }
  rule.feed(worker.end());
  const auto issues = rule.firing();
  ASSERT_EQ(issues.size(), 2U);
  EXPECT_EQ(issues[0].kind, "eval_state_in_training");
  EXPECT_EQ(issues[0].step, 2);
  EXPECT_EQ(issues[1].kind, "train_state_in_evaluation");
  EXPECT_EQ(issues[1].step, 1);
}

}  // namespace
}  // namespace tocsin::rules
