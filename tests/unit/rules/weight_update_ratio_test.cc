#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/rules/rule_bench.h"

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

// ------------------------------------------------------------------------ windows and edges

/// One weight tensor of 10 elements.
struct UpdateSaves {
  RowBench rule;
  std::uint64_t count = 10;
  double rate = std::nan("");
  double most = std::nan("");
  core::Dtype dtype = core::Dtype::f32;
  explicit UpdateSaves(const std::string& with = "{}", const std::string& preset = "original")
      : rule("weight_update_ratio", with, preset) {}

  std::string norm(std::int64_t step, double l2) { return rule.judge(step, row(l2), context()); }
  std::string moved(std::int64_t step, std::int64_t from, double delta, double before = 1) {
    RowContext with = context();
    with.sparse = {{SparseStat::delta_l2, delta},
                   {SparseStat::prev_l2, before},
                   {SparseStat::delta_from_step, static_cast<double>(from)}};
    return rule.judge(step, row(before), with);
  }
  /// The same when `now` is the rate that is logged.
  std::string moved_at(double now, std::int64_t step, std::int64_t from, double delta) {
    rate = now;
    return moved(step, from, delta);
  }
  [[nodiscard]] core::SummaryRow row(double l2) const {
    core::SummaryRow made = row_of("w", Role::weight, count, l2, l2);
    made.meta = core::meta::make(dtype, Role::weight);
    return made;
  }
  [[nodiscard]] RowContext context() const {
    RowContext with;
    with.learning_rate = rate;
    with.max_learning_rate = most;
    return with;
  }
};

TEST(WeightUpdateRatio, RemembersAsManySavesAsNumStepsNeeds) {
  UpdateSaves w("{num_steps: 20}");
  for (std::int64_t step = 0; step < 20; ++step) w.norm(step, 1);
  EXPECT_EQ(w.norm(20, 30), "hit too_large");
  EXPECT_EQ(w.rule.finding->first_step, 0) << "the earliest of 20 saves in reach";
  EXPECT_EQ(w.moved(21, 1, 1e-3), "ok") << "measured against the earliest in reach, 1";
  EXPECT_EQ(w.moved(22, 21, 1e-12), "insufficient_data") << "measured against another";
  UpdateSaves sparse("{num_steps: 1000}");
  for (std::int64_t step = 0; step < 1000; step += 100) sparse.norm(step, 1);
  EXPECT_EQ(sparse.norm(1000, 30), "hit too_large");
  EXPECT_EQ(sparse.rule.finding->first_step, 0);
}

TEST(WeightUpdateRatio, BeyondItsMemoryItSaysThatItDoesNotKnow) {
  UpdateSaves w("{num_steps: 1000}");
  for (std::int64_t step = 0; step < 255; ++step) w.norm(step, 1);
  EXPECT_EQ(w.norm(255, 30), "hit too_large") << "255 saves, all of them known";
  EXPECT_EQ(w.norm(256, 1), "insufficient_data") << "256 known, and maybe one before";
}

TEST(WeightUpdateRatio, InfinityIsTooLargeAndNaNIsNothing) {
  UpdateSaves w;
  w.norm(0, 1);
  EXPECT_EQ(w.norm(1, HUGE_VAL), "hit too_large");
  EXPECT_EQ(w.norm(2, HUGE_VAL), "insufficient_data") << "Inf − Inf";
  EXPECT_EQ(w.norm(3, std::nan("")), "insufficient_data");
  EXPECT_EQ(w.norm(4, 1), "insufficient_data");
  EXPECT_EQ(w.moved(5, 4, HUGE_VAL), "hit too_large");
  EXPECT_EQ(w.moved(6, 5, std::nan("")), "insufficient_data");
}

TEST(WeightUpdateRatio, AnotherShapeStartsAnew) {
  UpdateSaves w;
  w.norm(0, 1);
  w.count = 20;
  EXPECT_EQ(w.norm(1, 99), "insufficient_data");
  EXPECT_EQ(w.norm(2, 9999), "hit too_large");
  w.rule.knows("w", {4, 5});
  EXPECT_EQ(w.norm(3, 1), "insufficient_data") << "now its shape is known";
  w.rule.knows("w", {5, 4});
  EXPECT_EQ(w.norm(4, 99), "insufficient_data") << "the same number, other dimensions";
}

TEST(WeightUpdateRatio, ASingleNumberMayTurnRound) {
  UpdateSaves w("{}", "tocsin");
  w.count = 1;
  EXPECT_EQ(w.moved(1, 0, 1e-9), "insufficient_data");
  EXPECT_EQ(w.moved(2, 1, 1e-3), "ok") << "it went on";
  EXPECT_EQ(w.moved(3, 2, 1e-9), "insufficient_data");
  EXPECT_EQ(w.moved(4, 3, 1e-9), "insufficient_data");
  EXPECT_EQ(w.moved(5, 4, 1e-9), "hit too_small") << "three saves in a row";
  UpdateSaves many("{}", "tocsin");
  many.count = 2;
  EXPECT_EQ(many.moved(11, 10, 1e-9), "hit too_small");
}

TEST(WeightUpdateRatio, TheLimitsAreStrict) {
  UpdateSaves w("{epsilon: 1, large_threshold: 10, small_threshold: 0.25}");
  w.norm(0, 1);
  EXPECT_EQ(w.moved(1, 0, 20), "ok") << "20 / (1 + 1) = 10";
  EXPECT_EQ(w.moved(2, 1, 20.001), "hit too_large");
  EXPECT_EQ(w.moved(3, 2, 0.5), "ok") << "0.5 / 2 = 0.25";
  EXPECT_EQ(w.moved(4, 3, 0.499), "hit too_small");
  EXPECT_EQ(w.moved(5, 4, 0, 0), "hit too_small") << "a tensor that stays zero";
  EXPECT_EQ(w.moved(6, 5, 30, 0.5), "hit from_zero") << "its norm was below epsilon";
}

// --------------------------------------------------------------------- the learning rate

TEST(WeightUpdateRatio, ADecayingScheduleIsNoFault) {
  UpdateSaves w("{}", "tocsin");
  w.most = 1e-3;
  w.rate = 1e-3;
  w.norm(0, 1);
  EXPECT_EQ(w.moved(1, 0, 1e-4), "ok");
  w.rate = 1e-5;
  EXPECT_EQ(w.moved(2, 1, 1e-6), "ok") << "1e-6 at a hundredth of the rate is 1e-4";
  EXPECT_EQ(w.moved(3, 2, 1e-9), "hit too_small") << "1e-9 is not";
  EXPECT_NEAR(w.rule.finding->observed.value, 1e-7, 1e-12);
  w.rate = 0;
  EXPECT_EQ(w.moved(4, 3, 0), "insufficient_data") << "nothing was to move";
  EXPECT_EQ(w.moved(5, 4, 50), "hit too_large") << "which has nothing to do with it";
}

TEST(WeightUpdateRatio, AtARestartTheRateBeforeIsTheOneThatMadeTheUpdate) {
  UpdateSaves w("{}", "tocsin");
  w.rate = w.most = 0.1;
  w.norm(0, 1);
  EXPECT_EQ(w.moved(10, 0, 1e-2), "ok");
  EXPECT_EQ(w.moved_at(1e-3, 990, 10, 1), "ok");
  EXPECT_EQ(w.moved_at(0.1, 1000, 990, 1e-6), "ok") << "1e-7 per step at a hundredth of the rate";
  EXPECT_EQ(w.moved_at(0.1, 1010, 1000, 1e-6), "hit too_small") << "the same at the full rate";
  EXPECT_EQ(w.moved_at(0, 1020, 1010, 1e-3), "insufficient_data");
  EXPECT_EQ(w.moved_at(0.1, 1030, 1020, 1e-9), "insufficient_data") << "anew from a rate of 0";
  EXPECT_EQ(w.moved_at(0.1, 1040, 1030, 1e-9), "hit too_small");
}

TEST(WeightUpdateRatio, WithNumStepsTheRateOfTheStepThatItComparesWithCounts) {
  UpdateSaves w("{num_steps: 20}", "tocsin");
  w.most = 0.1;
  w.rate = 1e-3;
  w.norm(0, 1);
  w.rate = 0.1;
  w.norm(10, 1);
  EXPECT_EQ(w.moved_at(0.1, 20, 0, 1e-6), "ok") << "5e-8 per step at a hundredth of the rate";
  EXPECT_EQ(w.moved_at(0.1, 30, 10, 1e-6), "hit too_small") << "both ends at the full rate";
}

TEST(WeightUpdateRatio, InAFirstWarmUpTheUpdateIsSeenRelativeToTheRateNow) {
  UpdateSaves w("{}", "tocsin");
  w.rate = w.most = 1e-5;
  w.norm(0, 1);
  w.most = 1e-3;
  EXPECT_EQ(w.moved_at(1e-3, 10, 0, 1e-6), "hit too_small") << "not of a hundredth of it";
}

TEST(WeightUpdateRatio, UpdatesThatRoundingTakesAreNoFault) {
  // By 1e-4 of its norm at the full rate. Four float32 steps (1.2e-7) are 4.8e-7.
  UpdateSaves w("{}", "tocsin");
  w.rate = w.most = 0.1;
  w.norm(100, 1);
  EXPECT_EQ(w.moved(101, 100, 1e-4), "ok");
  EXPECT_EQ(w.moved_at(1e-3, 102, 101, 0), "hit too_small") << "1e-6 was to be expected";
  EXPECT_EQ(w.moved_at(4e-4, 103, 102, 0), "insufficient_data") << "4e-7 was";
  EXPECT_EQ(w.moved_at(4e-4, 104, 103, 4e-7), "ok") << "what moves has moved";
  EXPECT_EQ(w.moved_at(0.1, 105, 104, 0), "insufficient_data") << "made at the rate before";
  EXPECT_EQ(w.moved_at(0.1, 106, 105, 0), "hit too_small") << "the full rate explains nothing";
}

TEST(WeightUpdateRatio, ARateThatHasDiedForATenthOfTheRunIsAFault) {
  UpdateSaves w("{}", "tocsin");
  w.rate = w.most = 0.1;
  w.norm(800, 1);
  EXPECT_EQ(w.moved(900, 800, 1e-2), "ok");
  EXPECT_EQ(w.moved_at(1e-7, 950, 900, 0), "insufficient_data");
  EXPECT_EQ(w.moved_at(1e-7, 1000, 950, 0), "insufficient_data") << "100 steps of 1000";
  EXPECT_EQ(w.moved_at(1e-7, 1001, 1000, 0), "hit too_small") << "101 of 1001";
  EXPECT_EQ(w.moved_at(1e-7, 1050, 1001, 1e-9), "ok") << "2e-5 at the full rate";
  EXPECT_EQ(w.moved_at(1e-7, 1100, 1050, 0), "insufficient_data") << "anew";
  UpdateSaves early("{}", "tocsin");
  early.rate = early.most = 0.1;
  early.norm(0, 1);
  EXPECT_EQ(early.moved(10, 0, 1e-3), "ok");
  EXPECT_EQ(early.moved_at(1e-7, 20, 10, 0), "hit too_small") << "half of the run so far";
}

TEST(WeightUpdateRatio, WhatNeverMovedIsNotExplainedByRounding) {
  UpdateSaves w("{}", "tocsin");
  w.rate = w.most = 0.1;
  w.norm(100, 1);
  EXPECT_EQ(w.moved(101, 100, 0), "hit too_small");
  EXPECT_EQ(w.moved_at(1e-7, 102, 101, 0), "hit too_small") << "no usual update is known";
  EXPECT_EQ(w.moved_at(1e-7, 103, 102, 1e-9), "ok") << "1e-3 at the full rate";
  EXPECT_EQ(w.moved_at(1e-7, 104, 103, 0), "insufficient_data");
  w.count = 20;  // another tensor by the same name
  w.norm(105, 1);
  EXPECT_EQ(w.moved_at(1e-7, 106, 105, 0), "hit too_small");
}

TEST(WeightUpdateRatio, RoundingIsThatOfTheWeightsType) {
  const auto at_a_hundredth = [](core::Dtype dtype) {  // of a rate that moves it by 1e-2
    UpdateSaves w("{}", "tocsin");
    w.dtype = dtype;
    w.rate = w.most = 0.1;
    w.norm(100, 1);
    EXPECT_EQ(w.moved(101, 100, 1e-2), "ok");
    return w.moved_at(1e-3, 102, 101, 0);
  };
  EXPECT_EQ(at_a_hundredth(core::Dtype::f32), "hit too_small");
  EXPECT_EQ(at_a_hundredth(core::Dtype::unknown), "hit too_small") << "taken for float32";
  EXPECT_EQ(at_a_hundredth(core::Dtype::f16), "insufficient_data") << "1e-4, of 3.9e-3";
  EXPECT_EQ(at_a_hundredth(core::Dtype::bf16), "insufficient_data") << "1e-4, of 3.1e-2";
  EXPECT_EQ(at_a_hundredth(core::Dtype::f8_e4m3), "insufficient_data");
  UpdateSaves fine("{}", "tocsin");
  fine.dtype = core::Dtype::f64;
  fine.rate = fine.most = 0.1;
  fine.norm(100, 1);
  EXPECT_EQ(fine.moved(101, 100, 1e-4), "ok");
  EXPECT_EQ(fine.moved_at(1e-5, 102, 101, 0), "hit too_small") << "1e-8 is much to float64";
  EXPECT_EQ(fine.moved_at(1e-13, 103, 102, 0), "insufficient_data");
}

TEST(WeightUpdateRatio, ATypeThatIsTooCoarseForMoreThanHalfTheRateIsAFault) {
  UpdateSaves w("{}", "tocsin");
  w.dtype = core::Dtype::bf16;
  w.rate = w.most = 0.1;
  w.norm(100, 1);
  EXPECT_EQ(w.moved(101, 100, 1e-3), "ok");
  EXPECT_EQ(w.moved(102, 101, 0), "hit too_small") << "at the full rate";
  EXPECT_EQ(w.moved_at(0.06, 103, 102, 0), "hit too_small");
  EXPECT_EQ(w.moved_at(0.04, 104, 103, 0), "insufficient_data");
}

TEST(WeightUpdateRatio, OriginalLooksAtNoRateAndNoRounding) {
  UpdateSaves w;
  w.rate = w.most = 0.1;
  w.norm(0, 1);
  EXPECT_EQ(w.moved(1, 0, 1e-4), "ok");
  EXPECT_EQ(w.moved_at(1e-7, 2, 1, 0), "hit too_small");
  EXPECT_EQ(w.moved_at(0, 3, 2, 0), "hit too_small");
  EXPECT_EQ(w.moved_at(0.1, 4, 3, 1e-9), "hit too_small");
}

TEST(WeightUpdateRatio, AWarmUpFromZeroIsNoFault) {
  UpdateSaves w("{}", "tocsin");
  w.rate = 0;
  w.most = 0;
  w.norm(0, 1);
  w.rate = w.most = 1e-5;
  EXPECT_EQ(w.moved(1, 0, 0), "insufficient_data") << "step 0 was made with a rate of 0";
  EXPECT_EQ(w.moved(2, 1, 0), "insufficient_data") << "it may stand behind a branch of zeros";
  EXPECT_EQ(w.moved(10, 2, 0), "hit too_small");
}

TEST(WeightUpdateRatio, WhatHasNotMovedYetHasTenUpdates) {
  UpdateSaves w("{}", "tocsin");
  w.norm(0, 1);
  for (std::int64_t step = 1; step < 10; ++step) {
    EXPECT_EQ(w.moved(step, step - 1, 1e-9), "insufficient_data") << step;
  }
  EXPECT_EQ(w.moved(10, 9, 1e-9), "hit too_small");
  UpdateSaves moves("{}", "tocsin");
  moves.norm(0, 1);
  EXPECT_EQ(moves.moved(1, 0, 1e-3), "ok");
  EXPECT_EQ(moves.moved(2, 1, 1e-9), "hit too_small") << "it has moved, and stops";
  UpdateSaves original;
  original.norm(0, 1);
  EXPECT_EQ(original.moved(1, 0, 1e-9), "hit too_small");
}

TEST(WeightUpdateRatio, WithoutARateTheLimitIsAbsolute) {
  UpdateSaves w("{}", "tocsin");
  w.norm(0, 1);
  EXPECT_EQ(w.moved(10, 9, 1e-7), "hit too_small");
  UpdateSaves original;
  original.rate = 1e-6;
  original.most = 1;
  original.norm(0, 1);
  EXPECT_EQ(original.moved(1, 0, 1e-9), "hit too_small") << "original knows no rate";
}

}  // namespace
}  // namespace tocsin::rules
