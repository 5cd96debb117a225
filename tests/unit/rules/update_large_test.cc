#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/rules/rule_bench.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Role;
using core::SparseStat;

struct Matrix {
  RowBench rule;
  std::uint64_t flags = 0;
  explicit Matrix(const std::string& with = "{}") : rule("update_large", with) {
    rule.knows("fc.weight", {2, 5}).knows("norm.weight", {10});
  }
  /// Norms only.
  std::string saved(std::int64_t step, double l2, const char* name = "fc.weight") {
    return rule.judge(step, row_of(name, Role::weight, 10, l2, l2, flags));
  }
  std::string moved(std::int64_t step, std::int64_t from, double delta, double before,
                    RowContext with = {}) {
    with.sparse = {{SparseStat::delta_l2, delta},
                   {SparseStat::prev_l2, before},
                   {SparseStat::delta_from_step, static_cast<double>(from)}};
    return rule.judge(step, row_of("fc.weight", Role::weight, 10, before, before, flags), with);
  }
};

TEST(UpdateLarge, NeedsTwoUpdatesInARow) {
  Matrix w;
  EXPECT_EQ(w.moved(5, 4, 3.1, 10), "ok") << "once may be chance";
  EXPECT_EQ(w.moved(6, 5, 3.1, 10), "hit");
  EXPECT_NEAR(w.rule.finding->observed.value, 0.31, 1e-12);
  EXPECT_EQ(w.rule.finding->first_step, 4);
  EXPECT_EQ(w.moved(7, 6, 3, 10), "ok") << "0.3 is the limit";
  Matrix one("{updates: 1, threshold: 2, once: 0}");
  EXPECT_EQ(one.moved(5, 4, 20, 10), "ok");
  EXPECT_EQ(one.moved(6, 5, 21, 10), "hit");
}

TEST(UpdateLarge, MoreThanItsNormPerStepIsTooMuchAtOnce) {
  Matrix w;
  EXPECT_EQ(w.moved(12, 2, 100, 10), "ok") << "its norm is the limit";
  Matrix more;
  EXPECT_EQ(more.moved(12, 2, 101, 10), "hit");
  EXPECT_NEAR(more.rule.finding->observed.value, 1.01, 1e-12);
  Matrix off("{once: 0}");
  EXPECT_EQ(off.moved(12, 2, 101, 10), "ok");
  Matrix nothing;
  EXPECT_EQ(nothing.moved(12, 2, 5, 0.0158), "ok") << "it started next to nothing";
  EXPECT_EQ(nothing.moved(22, 12, 5, 0.0159), "hit") << "10 elements of 0.005";
  Matrix adapter;  // B of LoRA starts at 0, and the rate warms up
  EXPECT_EQ(adapter.moved(10, 0, 0.0126, 0), "ok");
  EXPECT_EQ(adapter.moved(20, 10, 0.0440, 0.0126), "ok") << "0.35 of its norm per step";
  EXPECT_EQ(adapter.moved(30, 20, 0.0500, 0.0500), "ok");
}

TEST(UpdateLarge, AMatrixThatHardlyMovedAndIsAnotherOneWasReplaced) {
  Matrix w;
  std::int64_t step = 0;
  const auto calm = [&](Matrix& matrix, double delta) {
    step += 10;
    return matrix.moved(step, step - 10, delta, 10);
  };
  for (int i = 0; i < 4; ++i) EXPECT_EQ(calm(w, 0.2), "ok");
  EXPECT_EQ(calm(w, 9), "ok") << "0.9 is the limit, and what is usual from now on";
  for (int i = 0; i < 4; ++i) EXPECT_EQ(calm(w, 0.2), "ok");
  EXPECT_EQ(calm(w, 9.5), "hit") << "0.9 · 0.7⁴ is less than a quarter of 0.95";
  EXPECT_NEAR(w.rule.finding->observed.value, 0.95, 1e-12);
  EXPECT_EQ(w.rule.finding->first_step, step - 10);
  EXPECT_EQ(calm(w, 9.5), "ok") << "told once; that was the usual move";
  Matrix three;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(calm(three, 0.2), "ok");
  EXPECT_EQ(calm(three, 9.5), "ok") << "three saves tell too little";
  Matrix off("{replaced: 0}");
  for (int i = 0; i < 4; ++i) EXPECT_EQ(calm(off, 0.2), "ok");
  EXPECT_EQ(calm(off, 9.5), "ok");
}

TEST(UpdateLarge, AMatrixOfWhichNextToNothingIsLeftHasWithered) {
  RowBench rule("update_large");
  rule.knows("fc.weight", {4, 4});
  const auto saved = [&](std::int64_t step, double l2) {
    return rule.judge(step, row_of("fc.weight", Role::weight, 16, l2, l2));
  };
  EXPECT_EQ(saved(0, 10), "insufficient_data") << "no deltas";
  EXPECT_EQ(saved(10, 20), "insufficient_data");
  EXPECT_EQ(saved(20, 2), "insufficient_data") << "a tenth of its largest norm is the limit";
  EXPECT_EQ(saved(30, 1.9), "hit");
  EXPECT_EQ(rule.finding->observed.name, "share_of_norm");
  EXPECT_NEAR(rule.finding->observed.value, 0.095, 1e-12);
  EXPECT_EQ(rule.finding->first_step, 10) << "where it had its largest norm";
  RowBench few("update_large");
  few.knows("head.weight", {3, 5});
  for (const double l2 : {10.0, 0.1}) {
    EXPECT_EQ(few.judge(0, row_of("head.weight", Role::weight, 15, l2, l2)), "insufficient_data");
  }
}

TEST(UpdateLarge, AMatrixThatLosesHalfAPercentPerStepShrinksAway) {
  RowBench rule("update_large");
  rule.knows("fc.weight", {4, 5});
  std::int64_t step = 0;
  const auto saved = [&](double l2, std::uint64_t count = 20) {
    return rule.judge(step += 10, row_of("fc.weight", Role::weight, count, l2, l2));
  };
  // Ten steps of 0.5 % leave 0.951.
  double norm = 10;
  EXPECT_EQ(saved(norm), "insufficient_data");
  for (int i = 0; i < 4; ++i) EXPECT_EQ(saved(norm *= 0.95), "insufficient_data") << i;
  EXPECT_EQ(saved(norm *= 0.95), "hit") << "0.815 were left of it after four, 0.774 after five";
  EXPECT_NEAR(rule.finding->observed.value, 0.7738, 1e-4);
  EXPECT_EQ(rule.finding->first_step, 10);
  EXPECT_EQ(saved(norm *= 0.96), "insufficient_data") << "slower";
  EXPECT_EQ(saved(norm *= 0.5), "insufficient_data") << "in four saves in a row";
  for (int i = 0; i < 2; ++i) saved(norm *= 0.9);
  EXPECT_EQ(saved(norm *= 0.9), "hit");
}

TEST(UpdateLarge, FewElementsMayShrinkAndItCanBeLeftOut) {
  for (const auto& [with, count] :
       {std::pair<const char*, std::uint64_t>{"{}", 15}, {"{shrinks: 0}", 20}}) {
    RowBench rule("update_large", with);
    rule.knows("fc.weight", {4, 5});
    double norm = 10;
    for (std::int64_t i = 1; i < 9; ++i) {
      EXPECT_EQ(rule.judge(i, row_of("fc.weight", Role::weight, count, norm, norm)),
                "insufficient_data");
      norm *= 0.9;
    }
  }
}

// A worker's losses: flat at `level` for 20 steps, then five of `newest`.
LossCourse course(double level, double newest) {
  LossCourse out;
  for (int i = 0; i < 25; ++i) out.add(1, i, i < 20 ? level : newest);
  return out;
}

TEST(UpdateLarge, WhatMovesFarWhileTheLossFallsLearns) {
  const LossCourse falls = course(4.16, 3.5);
  const LossCourse stands = course(4.16, 4.16);
  RowContext learning;
  learning.losses = &falls;
  Matrix table;  // it starts next to zero and grows many times over
  EXPECT_EQ(table.moved(20, 10, 80, 10, learning), "ok");
  EXPECT_EQ(table.moved(30, 20, 80, 20, learning), "insufficient_data") << "0.4 per step, twice";
  EXPECT_EQ(table.moved(40, 30, 500, 40, learning), "insufficient_data") << "once";
  RowContext not_learning;
  not_learning.losses = &stands;
  EXPECT_EQ(table.moved(50, 40, 80, 20, not_learning), "hit");
  EXPECT_EQ(table.rule.finding->first_step, 10);
  Matrix always("{while_falling: true}");
  EXPECT_EQ(always.moved(20, 10, 80, 10, learning), "ok");
  EXPECT_EQ(always.moved(30, 20, 80, 20, learning), "hit");
}

struct Wide {
  RowBench rule;
  std::int64_t step = 0;
  explicit Wide(const std::string& with = "{}") : rule("update_large", with) {
    rule.knows("fc.weight", {4, 4});
  }
  /// Moves by such a share of its norm per step, at a share of the largest learning rate.
  std::string moved(double pace, double rate = 1, std::uint64_t count = 16) {
    RowContext with;
    with.learning_rate = rate;
    with.max_learning_rate = 1;
    step += 10;
    with.sparse = {{SparseStat::delta_l2, 10 * pace * 10},
                   {SparseStat::prev_l2, 10},
                   {SparseStat::delta_from_step, static_cast<double>(step - 10)}};
    return rule.judge(step, row_of("fc.weight", Role::weight, count, 10, 10), with);
  }
};

TEST(UpdateLarge, ThreeTimesThePaceOfLateTwiceInARowIsNotWhatMovedItBefore) {
  Wide w;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(w.moved(0.002), "ok");
  EXPECT_EQ(w.moved(0.0061), "ok") << "once may be chance";
  EXPECT_EQ(w.moved(0.0061), "hit");
  EXPECT_NEAR(w.rule.finding->observed.value, 0.0061, 1e-12);
  EXPECT_EQ(w.rule.finding->first_step, 40);
  EXPECT_EQ(w.moved(0.0061), "hit") << "it goes on";
  Wide limit;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(limit.moved(0.002), "ok");
  for (int i = 0; i < 4; ++i) EXPECT_EQ(limit.moved(0.0059), "ok") << "below three times";
  Wide forgets;
  EXPECT_EQ(forgets.moved(0.02), "ok") << "the first steps move it far";
  for (int i = 0; i < 20; ++i) EXPECT_EQ(forgets.moved(0.001), "ok");
  EXPECT_EQ(forgets.moved(0.01), "ok");
  EXPECT_EQ(forgets.moved(0.01), "hit") << "0.02 · 0.85²⁰ is less than 0.001";
}

TEST(UpdateLarge, APaceIsSeenBesideTheLearningRateToo) {
  Wide restart;  // the rate falls to a tenth, and starts anew
  for (const double rate : {1.0, 0.8, 0.5, 0.3, 0.1, 0.1, 0.1, 0.1, 0.1, 1.0, 1.0, 0.9}) {
    EXPECT_EQ(restart.moved(0.002 * rate, rate), "ok") << rate;
  }
  Wide decay;  // the rate falls faster than the weights slow down
  for (const double rate : {1.0, 1.0, 1.0, 1.0, 1.0, 0.01, 0.01, 0.01}) {
    EXPECT_EQ(decay.moved(rate == 1 ? 0.002 : 0.001, rate), "ok") << rate;
  }
  Wide later;  // the judge of an autoencoder, whose loss counts from some step on
  for (int i = 0; i < 6; ++i) EXPECT_EQ(later.moved(0), "ok");
  for (int i = 0; i < 4; ++i) EXPECT_EQ(later.moved(0.002), "ok") << "what begins to move";
  Wide few;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(few.moved(0.002, 1, 15), "ok");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(few.moved(0.02, 1, 15), "ok") << "15 elements";
  Wide off("{faster: 0}");
  for (int i = 0; i < 4; ++i) EXPECT_EQ(off.moved(0.002), "ok");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(off.moved(0.02), "ok");
}

TEST(UpdateLarge, CountsPerStep) {
  Matrix w;
  EXPECT_EQ(w.moved(20, 10, 31, 10), "ok");
  EXPECT_EQ(w.moved(30, 20, 29, 10), "ok");
  EXPECT_EQ(w.moved(40, 30, 31, 10), "ok") << "0.31 per step, once";
  EXPECT_EQ(w.moved(50, 40, 31, 10), "hit");
}

TEST(UpdateLarge, TheFirstStepsAreWarmUp) {
  Matrix w;
  EXPECT_EQ(w.moved(1, 0, 50, 10), "insufficient_data");
  EXPECT_EQ(w.moved(2, 1, 50, 10), "hit");
}

TEST(UpdateLarge, NormsAloneAreNotEnough) {
  Matrix w;
  EXPECT_EQ(w.saved(4, 1), "insufficient_data");
  EXPECT_EQ(w.saved(5, 100), "insufficient_data");
}

TEST(UpdateLarge, VectorsAndFrozenOnesAreLeftOut) {
  Matrix w;
  EXPECT_EQ(w.saved(5, 1, "norm.weight"), "unselected");
  w.flags = core::meta::kNotTrainable;
  EXPECT_EQ(w.moved(6, 5, 90, 10), "not_applicable");
}

TEST(UpdateLarge, InfinityIsLargeAndNaNIsNothing) {
  Matrix w;
  EXPECT_EQ(w.moved(5, 4, std::nan(""), 1), "insufficient_data");
  EXPECT_EQ(w.moved(6, 5, 1, std::nan("")), "insufficient_data");
  EXPECT_EQ(w.moved(7, 6, HUGE_VAL, 1), "hit");
  EXPECT_EQ(w.moved(8, 7, 1, 0), "ok") << "a matrix that was zero, after one that was hit";
  EXPECT_EQ(w.moved(9, 8, 0, 0), "ok") << "and one that stays so";
}

TEST(UpdateLarge, IsToldAtTheSecondOfThem) {
  RuleHarness rule = RuleHarness::of("update_large");
  FakeWorker worker;
  rule.feed(worker.dictionary(
      {{core::DictionaryType::tensor, "w", Role::weight, core::Dtype::f32, {2, 5}}}));
  for (std::int64_t step = 5; step < 8; ++step) {
    EXPECT_TRUE(rule.firing().empty() || step == 7);
    rule.feed(worker.summary(core::Mode::train, step, {row_of("w", Role::weight, 10, 1, 1)},
                             {{SparseStat::delta_l2, 0, 0.5},
                              {SparseStat::prev_l2, 0, 1},
                              {SparseStat::delta_from_step, 0, static_cast<double>(step - 1)}}));
  }
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_EQ(rule.firing()[0].step, 6);
}

}  // namespace
}  // namespace tocsin::rules
