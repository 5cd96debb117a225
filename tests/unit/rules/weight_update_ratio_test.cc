#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/rule_harness.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;
using core::SparseStat;

OwnedFrame weights(FakeWorker& worker, std::int64_t step, double l2, std::uint64_t flags = 0,
                   std::uint64_t count = 10) {
  return worker.summary(Mode::train, step, {row_of("w", Role::weight, count, l2, l2, flags)});
}

OwnedFrame moved(FakeWorker& worker, std::int64_t step, std::int64_t from, double delta,
                 double before, std::uint64_t flags = 0) {
  return worker.summary(Mode::train, step, {row_of("w", Role::weight, 10, before, before, flags)},
                        {{SparseStat::delta_l2, 0, delta},
                         {SparseStat::prev_l2, 0, before},
                         {SparseStat::delta_from_step, 0, static_cast<double>(from)}});
}

TEST(WeightUpdateRatio, TinyLearningRateHitsTooSmall) {
  RuleHarness rule = RuleHarness::of("weight_update_ratio", "{}", "original");
  FakeWorker worker;
  rule.feed(weights(worker, 0, 1)).feed(moved(worker, 1, 0, 1e-10, 1));
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_EQ(rule.firing()[0].kind, "too_small");
  EXPECT_EQ(rule.firing()[0].labels.get("kind"), "too_small");
  EXPECT_EQ(rule.firing()[0].evidence.window.first, 0);
}

TEST(WeightUpdateRatio, UsualLearningRateIsQuiet) {
  RuleHarness rule = RuleHarness::of("weight_update_ratio", "{}", "original");
  FakeWorker worker;
  rule.feed(weights(worker, 0, 1)).feed(moved(worker, 1, 0, 1e-3, 1));
  EXPECT_TRUE(rule.firing().empty());
}

TEST(WeightUpdateRatio, ZeroWeightsThatMoveAreOnlyWorthAMention) {
  RuleHarness rule = RuleHarness::of("weight_update_ratio", "{}", "original");
  FakeWorker worker;
  rule.feed(weights(worker, 0, 0)).feed(moved(worker, 1, 0, 0.5, 0));
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_EQ(rule.firing()[0].kind, "from_zero");
  EXPECT_EQ(rule.firing()[0].severity, core::Severity::info);
}

TEST(WeightUpdateRatio, TwoNormsProveTooLargeButNeverTooSmall) {
  RuleHarness rule = RuleHarness::of("weight_update_ratio", "{}", "original");
  FakeWorker worker;
  rule.feed(weights(worker, 0, 1)).feed(weights(worker, 1, 1));
  EXPECT_TRUE(rule.firing().empty());
  EXPECT_EQ(rule.rule_state(), "") << "nothing has been proven yet";
  rule.feed(weights(worker, 2, 20));
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_EQ(rule.firing()[0].kind, "too_large");
}

TEST(WeightUpdateRatio, DefaultJudgesTheUpdatePerStep) {
  RuleHarness ours = RuleHarness::of("weight_update_ratio");
  RuleHarness theirs = RuleHarness::of("weight_update_ratio", "{}", "original");
  FakeWorker worker;
  const std::vector<OwnedFrame> frames{weights(worker, 0, 1), moved(worker, 100, 0, 20, 1)};
  for (const OwnedFrame& frame : frames) {
    ours.feed(frame);
    theirs.feed(frame);
  }
  EXPECT_TRUE(ours.firing().empty()) << "0.2 of the norm per step";
  EXPECT_EQ(theirs.firing().size(), 1U);
}

TEST(WeightUpdateRatio, ComparesOnlyWithinNumSteps) {
  RuleHarness rule = RuleHarness::of("weight_update_ratio", "{num_steps: 5}", "original");
  FakeWorker worker;
  rule.feed(weights(worker, 0, 1)).feed(moved(worker, 10, 0, 1e-12, 1));
  EXPECT_TRUE(rule.firing().empty()) << "step 0 is out of reach";
  rule.feed(moved(worker, 15, 10, 1e-12, 1));
  EXPECT_EQ(rule.firing().size(), 1U);
}

TEST(WeightUpdateRatio, LeavesFrozenParametersAndNewShapesAlone) {
  RuleHarness rule = RuleHarness::of("weight_update_ratio", "{}", "original");
  FakeWorker worker;
  rule.feed(weights(worker, 0, 1, core::meta::kNotTrainable));
  rule.feed(moved(worker, 1, 0, 0, 1, core::meta::kNotTrainable));
  rule.feed(weights(worker, 2, 1)).feed(weights(worker, 3, 100, 0, 20));
  EXPECT_TRUE(rule.firing().empty());
}

TEST(WeightUpdateRatio, RefusesThresholdsInTheWrongOrder) {
  const ReadRules read = read_rules_text(
      "  - {use: weight_update_ratio, with: {large_threshold: 1, small_threshold: 2}}");
  EXPECT_NE(read.errors.find("large_threshold must be greater"), std::string::npos);
}

}  // namespace
}  // namespace tocsin::rules
