#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/rules/rule_bench.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Dtype;
using core::Role;
using core::SparseStat;

std::string judge_weights(RowBench& rule, const std::vector<double>& values,
                          Dtype dtype = Dtype::f32, const RowContext& with = {}) {
  static std::int64_t step = 0;
  return rule.judge(step++, TensorValues{"w", values, Role::weight, 0, dtype}, with);
}

/// 200 weights of which `saturated` are 5 and the others 0.5.
std::vector<double> clamped(int saturated) {
  std::vector<double> values(200, 0.5);
  for (int i = 0; i < saturated; ++i) values[static_cast<std::size_t>(i)] = i % 2 == 0 ? 5 : -5;
  return values;
}

RowContext saturated_count(double bound, double count) {
  RowContext with;
  with.sparse = {{SparseStat::abs_ge_count, count, {bound}}};
  return with;
}

TEST(WeightSaturation, CountsWhatIsAtTheBound) {
  RowBench rule("weight_saturation", "{bound: 5}");
  EXPECT_EQ(judge_weights(rule, clamped(2), Dtype::f32, saturated_count(5, 2)), "ok")
      << "1 % is tolerated";
  EXPECT_EQ(judge_weights(rule, clamped(3), Dtype::f32, saturated_count(5, 3)), "hit");
  EXPECT_NEAR(rule.finding->observed.value, 1.5, 1e-12);
  EXPECT_EQ(rule.finding->threshold->value, 1);
}

TEST(WeightSaturation, ACountForAnotherBoundIsNone) {
  RowBench rule("weight_saturation", "{bound: 5}");
  EXPECT_EQ(judge_weights(rule, clamped(3), Dtype::f32, saturated_count(4, 3)),
            "insufficient_data");
}

TEST(WeightSaturation, TheExtremesProveMuch) {
  RowBench rule("weight_saturation", "{bound: 5}");
  EXPECT_EQ(judge_weights(rule, {4.9, -4.9}), "ok") << "none is there";
  EXPECT_EQ(judge_weights(rule, {5, 6}), "hit") << "all are";
  EXPECT_EQ(judge_weights(rule, {5, 0, 0, 0}), "hit") << "one of four at least";
  EXPECT_EQ(judge_weights(rule, clamped(1)), "insufficient_data");
  std::vector<double> rare(100'000, 0.01);
  rare[0] = 5;
  EXPECT_EQ(judge_weights(rule, rare), "ok") << "the sum of squares leaves room for 0.1 % at most";
}

TEST(WeightSaturation, TheTypeBoundsItself) {
  RowBench rule("weight_saturation");
  EXPECT_EQ(judge_weights(rule, {62000, 62000}, Dtype::f16), "ok");
  EXPECT_EQ(judge_weights(rule, {62300, 62300}, Dtype::f16), "hit") << "0.95 · 65504 = 62228.8";
  EXPECT_EQ(judge_weights(rule, {426, 426}, Dtype::f8_e4m3), "hit") << "0.95 · 448 = 425.6";
  EXPECT_EQ(judge_weights(rule, {425, 425}, Dtype::f8_e4m3), "ok");
  EXPECT_EQ(judge_weights(rule, {120, -120}, Dtype::i8), "ok");
  EXPECT_EQ(judge_weights(rule, {121, -121}, Dtype::i8), "hit") << "0.95 · 127 = 120.65";
  EXPECT_EQ(judge_weights(rule, {1e30, 1e30}, Dtype::f32), "ok");
  EXPECT_EQ(judge_weights(rule, {1, 0}, Dtype::boolean), "not_applicable");
}

TEST(WeightSaturation, InfinityCountsAndNaNDoesNot) {
  RowBench rule("weight_saturation");
  EXPECT_EQ(judge_weights(rule, {HUGE_VAL, 0, 0, -HUGE_VAL}), "hit");
  EXPECT_EQ(rule.finding->observed.value, 50);
  const double nan = std::nan("");
  EXPECT_EQ(judge_weights(rule, {nan, nan, nan}), "ok") << "no element can be at the bound";
  EXPECT_EQ(judge_weights(rule, {nan, 0, 0}), "insufficient_data");
  EXPECT_EQ(judge_weights(rule, {nan, HUGE_VAL, 0}), "hit");
  core::SummaryRow empty;
  empty.meta = core::meta::make(Dtype::f32, Role::weight);
  EXPECT_EQ(rule.judge(0, empty), "not_applicable");
}

TEST(WeightSaturation, RefusesWhatMakesNoSense) {
  EXPECT_NE(refusal("WeightSaturation", "{bound: 0}").find("bound must be > 0"), std::string::npos);
  EXPECT_NE(refusal("weight_saturation", "{threshold_percent: 100}").find("threshold_percent"),
            std::string::npos);
  EXPECT_EQ(refusal("weight_saturation", "{threshold_percent: 0, bound: 1}"), "");
}

TEST(WeightSaturation, SaysWhatItCannotFindWithoutABound) {
  const ReadRules read = read_rules_text("  - weight_saturation");
  EXPECT_NE(read.errors.find("note: without bound f32 and f64 weights never fire"),
            std::string::npos);
  EXPECT_EQ(read.errors.find("error:"), std::string::npos) << "a note refuses nothing";
  EXPECT_EQ(read.config.rules.size(), 1U);
}

TEST(WeightSaturation, AsksForTheCountOfItsBound) {
  const RowBench rule("weight_saturation", "{bound: 2.5}");
  ASSERT_EQ(rule.program().needs.size(), 1U);
  EXPECT_EQ(rule.program().needs[0].statistics, std::vector<std::string>{"at_least(2.5)"});
}

}  // namespace
}  // namespace tocsin::rules
