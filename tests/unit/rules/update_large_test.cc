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
  std::string moved(std::int64_t step, std::int64_t from, double delta, double before) {
    RowContext with;
    with.sparse = {{SparseStat::delta_l2, delta},
                   {SparseStat::prev_l2, before},
                   {SparseStat::delta_from_step, static_cast<double>(from)}};
    return rule.judge(step, row_of("fc.weight", Role::weight, 10, before, before, flags), with);
  }
};

TEST(UpdateLarge, NeedsTwoHitsInARow) {
  Matrix w;
  EXPECT_EQ(w.rule.program().common.min_hits, 2U) << "once may be chance";
  EXPECT_EQ(w.moved(5, 4, 3.1, 10), "hit");
  EXPECT_EQ(w.moved(6, 5, 3.1, 10), "hit");
  EXPECT_NEAR(w.rule.finding->observed.value, 0.31, 1e-12);
  EXPECT_EQ(w.rule.finding->first_step, 4);
  EXPECT_EQ(w.moved(7, 6, 3, 10), "ok") << "0.3 is the limit";
  Matrix once("{min_hits: 1, threshold: 2}");
  EXPECT_EQ(once.rule.program().common.min_hits, 1U);
  EXPECT_EQ(once.moved(5, 4, 20, 10), "ok");
  EXPECT_EQ(once.moved(6, 5, 21, 10), "hit");
}

TEST(UpdateLarge, CountsPerStep) {
  Matrix w;
  EXPECT_EQ(w.moved(20, 10, 29, 10), "ok");
  EXPECT_EQ(w.moved(30, 20, 31, 10), "hit") << "0.31 per step";
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
  EXPECT_EQ(w.moved(8, 7, 1, 0), "hit") << "a matrix that was zero";
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
