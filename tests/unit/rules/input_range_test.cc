#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/rules/rule_bench.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Dtype;
using core::Mode;
using core::Role;

std::string input_range_of(RowBench& rule, const std::vector<double>& values,
                           Dtype dtype = Dtype::f32) {
  static std::int64_t step = 0;
  return rule.judge(step++, TensorValues{"images", values, Role::input, 0, dtype});
}

TEST(InputRange, FiresBeyondTheLimitOnEitherSide) {
  RowBench rule("input_range");
  EXPECT_EQ(input_range_of(rule, {-30, 30}), "ok") << "30 is the limit";
  EXPECT_EQ(input_range_of(rule, {0, 30.5}), "hit");
  EXPECT_EQ(input_range_of(rule, {-31, 0}), "hit");
  EXPECT_EQ(rule.finding->observed.value, 31);
  EXPECT_EQ(input_range_of(rule, {0, HUGE_VAL}), "hit");
  EXPECT_EQ(input_range_of(rule, {0, std::nan("")}), "insufficient_data");
}

TEST(InputRange, IntegersAreNoMeasurements) {
  RowBench rule("input_range");
  EXPECT_EQ(input_range_of(rule, {30521, 0}, Dtype::i64), "not_applicable");
  EXPECT_EQ(input_range_of(rule, {255, 0}, Dtype::u8), "not_applicable");
  EXPECT_EQ(input_range_of(rule, {255, 0}, Dtype::bf16), "hit");
  core::SummaryRow empty;
  empty.meta = core::meta::make(Dtype::f32, Role::input);
  EXPECT_EQ(rule.judge(100, empty), "not_applicable");
}

TEST(InputRange, OnlyInputsOfTheModelByDefault) {
  RowBench rule("input_range", "{threshold: 5}");
  EXPECT_EQ(rule.judge(0, TensorValues{"h", {9}, Role::activation_in}), "unselected");
  for (const Mode mode : {Mode::global, Mode::train, Mode::eval, Mode::predict}) {
    RowContext in;
    in.mode = mode;
    EXPECT_EQ(rule.judge(0, TensorValues{"x", {5.1}, Role::input}, in), "hit");
  }
}

}  // namespace
}  // namespace tocsin::rules
