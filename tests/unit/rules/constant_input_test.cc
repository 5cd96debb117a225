#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/rules/rule_bench.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Dtype;
using core::Role;

/// Answers to one batch after the other.
struct Batches {
  RowBench rule{"constant_input"};
  std::int64_t step = 0;
  std::string operator()(const std::vector<double>& values, Dtype dtype = Dtype::f32) {
    return rule.judge(step += 10, TensorValues{"x", values, Role::input, 0, dtype});
  }
};

TEST(ConstantInput, NeedsThreeHitsInARow) {
  Batches batch;
  EXPECT_EQ(batch.rule.program().common.min_hits, 3U);
  EXPECT_EQ(batch({2, 2}), "hit");
  EXPECT_EQ(batch({2, 2}), "hit");
  EXPECT_EQ(batch({0, 0}), "hit") << "whatever the value";
  EXPECT_EQ(batch.rule.finding->first_step, 10);
  EXPECT_EQ(batch.rule.finding->points, 3U);
  EXPECT_EQ(batch({0, 1}), "ok");
  EXPECT_EQ(batch({0, 0}), "hit");
  EXPECT_EQ(batch.rule.finding->points, 1U) << "the count starts again";
}

TEST(ConstantInput, TheLimitIsStrict) {
  Batches batch;
  EXPECT_EQ(batch({0, 2.0001e-5}), "ok") << "variance of {0, 2e-5} = 1e-10";
  EXPECT_EQ(batch({0, 1.9999e-5}), "hit");
  RowBench wide("constant_input", "{threshold: 0.5}");
  EXPECT_EQ(wide.judge(0, TensorValues{"x", {0, 1}, Role::input}), "hit");
  EXPECT_EQ(wide.judge(1, TensorValues{"x", {0, 2}, Role::input}), "ok");
}

TEST(ConstantInput, NaNSaysNothing) {
  Batches batch;
  EXPECT_EQ(batch({1, std::nan("")}), "insufficient_data");
  EXPECT_EQ(batch({1, HUGE_VAL}), "insufficient_data");
  EXPECT_EQ(batch({1}), "not_applicable");
  EXPECT_EQ(batch({}), "not_applicable");
}

TEST(ConstantInput, OneTargetForAllSamples) {
  RowBench rule("constant_input");
  rule.knows("net.squared_error_input_1", {2}, {}, Role::label);
  const TensorValues targets{"net.squared_error_input_1", {0.5, 0.5}, Role::label};
  EXPECT_EQ(rule.judge(0, targets), "hit");
  EXPECT_NE(rule.finding->summary.find("have the same target (newest: 0.5)"), std::string::npos)
      << rule.finding->summary;
  EXPECT_EQ(rule.judge(10, TensorValues{"net.squared_error_input_1", {0.5, 0.6}, Role::label}),
            "ok");
}

TEST(ConstantInput, MasksAreConstantByDesign) {
  Batches batch;
  EXPECT_EQ(batch({1, 1}, Dtype::boolean), "not_applicable");
  EXPECT_EQ(batch({1, 1}, Dtype::i64), "not_applicable") << "an attention mask";
  EXPECT_EQ(batch({0, 0}, Dtype::i64), "not_applicable") << "segment ids of single texts";
  EXPECT_EQ(batch({7, 7}, Dtype::i64), "hit") << "one token all over";
  EXPECT_EQ(batch({0, 0}, Dtype::f16), "hit");
}

TEST(ConstantInput, AFurtherInputIsJudgedOnceItHasVaried) {
  RowBench rule("constant_input");
  rule.knows("GRU_input_0", {2}, {}, Role::input).knows("GRU_input_1", {2}, {}, Role::input);
  const auto input = [&](std::int64_t step, const char* name, std::vector<double> values) {
    return rule.judge(step, TensorValues{name, std::move(values), Role::input});
  };
  EXPECT_EQ(input(0, "GRU_input_1", {0, 0}), "not_applicable") << "the first state of a cell";
  EXPECT_EQ(input(0, "GRU_input_0", {0, 0}), "hit") << "the data";
  EXPECT_EQ(input(10, "GRU_input_1", {0, 1}), "ok");
  EXPECT_EQ(input(20, "GRU_input_1", {0, 0}), "hit");
}

TEST(ConstantInput, NumbersOfInputsAreRead) {
  const auto first = [](const char* name) {
    RowBench rule("constant_input");
    rule.knows(name, {2}, {}, Role::input);
    return rule.judge(0, TensorValues{name, {2, 2}, Role::input});
  };
  EXPECT_EQ(first("Net_input_10"), "not_applicable");
  for (const char* name : {"Net_input_0", "my_input_", "my_input_b1", "input_1"}) {
    EXPECT_EQ(first(name), "hit") << name;
  }
}

TEST(ConstantInput, IsToldAtTheThirdOfThem) {
  RuleHarness rule = RuleHarness::of("constant_input");
  FakeWorker worker;
  for (const std::int64_t step : {0, 100, 200}) {
    EXPECT_TRUE(rule.firing().empty());
    rule.feed(worker.tensors(core::Mode::train, step, {{"x", {5, 5}, Role::input}}));
  }
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_EQ(rule.firing()[0].step, 200);
  EXPECT_EQ(rule.firing()[0].evidence.window.first, 0);
}

}  // namespace
}  // namespace tocsin::rules
