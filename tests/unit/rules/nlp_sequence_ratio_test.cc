#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/rules/rule_bench.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Dtype;
using core::Role;

TensorValues tokens(const std::vector<double>& values, Dtype dtype = Dtype::i64) {
  return {"ids", values, Role::input, 0, dtype};
}
RowContext value_counts(const std::vector<double>& values, const std::vector<double>& counts) {
  RowContext with;
  with.vectors = {{35, values, counts}};
  return with;
}

TEST(NlpSequenceRatio, ZerosAreCountedAnyway) {
  RowBench rule("nlp_sequence_ratio");
  rule.knows("ids", {2, 4});
  EXPECT_EQ(rule.judge(0, tokens({5, 6, 0, 0})), "ok") << "50 % is the limit";
  EXPECT_EQ(rule.judge(1, tokens({5, 0, 0, 0})), "hit");
  EXPECT_EQ(rule.finding->observed.value, 75);
  EXPECT_EQ(rule.finding->values.back().first, "sequence_length");
  EXPECT_EQ(rule.judge(2, tokens({0, 0, 0, 0})), "hit") << "nothing but padding";
}

TEST(NlpSequenceRatio, MasksAndSegmentsAreNoTokens) {
  RowBench rule("nlp_sequence_ratio");
  EXPECT_EQ(rule.judge(0, tokens({0, 0, 0})), "not_applicable");
  EXPECT_EQ(rule.judge(1, tokens({1, 0, 0})), "not_applicable");
  EXPECT_EQ(rule.judge(2, tokens({2, 1, 0}, Dtype::f32)), "not_applicable") << "floats are none";
  EXPECT_EQ(rule.judge(3, tokens({1, 0, 0}, Dtype::boolean)), "not_applicable");
  EXPECT_EQ(rule.judge(4, tokens({101, 0, 0})), "hit") << "seen to hold tokens";
  EXPECT_EQ(rule.judge(5, tokens({0, 0, 0})), "hit");
}

TEST(NlpSequenceRatio, EachTokenHasItsLimit) {
  RowBench rule("nlp_sequence_ratio",
                "{tensor_regex: [ids], token_values: [0, 3], token_thresholds_percent: [50, 20]}");
  rule.knows("ids", {10});
  const std::vector<double> some{0, 0, 0, 3, 3, 3, 7, 7, 7, 7};
  EXPECT_EQ(rule.judge(0, tokens(some), value_counts({0, 3}, {3, 3})), "hit");
  EXPECT_EQ(rule.finding->observed.value, 30);
  EXPECT_EQ(rule.finding->threshold->value, 20);
  EXPECT_EQ(rule.judge(1, tokens(some), value_counts({0, 3}, {3, 2})), "ok") << "20 % is the limit";
  EXPECT_EQ(rule.judge(2, tokens(some), value_counts({0, 4}, {3, 3})), "insufficient_data")
      << "3 was not counted";
  EXPECT_EQ(rule.judge(3, tokens({0, 0, 0, 2}), value_counts({3}, {0})), "hit")
      << "the first is told";
  EXPECT_EQ(rule.finding->threshold->value, 50);
}

TEST(NlpSequenceRatio, TheExtremesProveAbsenceAndUniformity) {
  RowBench rule("nlp_sequence_ratio", "{tensor_regex: [ids], token_values: [9]}");
  rule.knows("ids", {4});
  EXPECT_EQ(rule.judge(0, tokens({1, 2, 8, 8})), "ok") << "9 is beyond the largest";
  EXPECT_EQ(rule.judge(1, tokens({9, 9, 9, 9})), "hit");
  EXPECT_EQ(rule.judge(2, tokens({9, 9, 9, 1})), "insufficient_data");
  EXPECT_EQ(rule.judge(3, tokens({0, 0, 9, 9})), "ok") << "two zeros leave room for half";
}

TEST(NlpSequenceRatio, FloatsMatchWithinAMillionth) {
  RowBench rule("nlp_sequence_ratio", "{tensor_regex: [ids], token_values: ['9']}", "original");
  rule.knows("ids", {3});
  EXPECT_EQ(rule.judge(0, tokens({9.0000005, 9, 8.9999995}, Dtype::f32)), "hit");
  EXPECT_EQ(rule.judge(1, tokens({9.00001, 9.00001, 9.00002}, Dtype::f32)), "ok");
  RowBench zero("nlp_sequence_ratio", "{tensor_regex: [ids]}", "original");
  zero.knows("ids", {3});
  EXPECT_EQ(zero.judge(0, tokens({0, 0, 5}, Dtype::f32)), "hit");
  EXPECT_EQ(zero.judge(1, tokens({0, 5, 5}, Dtype::f32)), "insufficient_data")
      << "others may lie within a millionth";
  EXPECT_EQ(zero.judge(2, tokens({0, 5, 5}, Dtype::f32), value_counts({0}, {1})), "ok");
}

TEST(NlpSequenceRatio, NaNAndNothing) {
  RowBench rule("nlp_sequence_ratio", "{tensor_regex: [ids]}");
  rule.knows("ids", {3});
  EXPECT_EQ(rule.judge(0, tokens({0, 0, std::nan("")}, Dtype::f32)), "insufficient_data");
  EXPECT_EQ(rule.judge(1, tokens({})), "not_applicable");
}

TEST(NlpSequenceRatio, OriginalGoesByName) {
  RowBench rule("NLPSequenceRatio", "{}", "original");
  rule.knows("ids", {3}).knows("embedding0_input_0", {3});
  EXPECT_EQ(rule.judge(0, tokens({0, 0, 0})), "unselected");
  TensorValues named = tokens({0, 0, 1});
  named.name = "embedding0_input_0";
  EXPECT_EQ(rule.judge(0, named), "hit");
}

TEST(NlpSequenceRatio, RefusesListsThatDoNotFit) {
  EXPECT_NE(
      refusal("nlp_sequence_ratio", "{token_values: [0, 1, 2], token_thresholds_percent: [1, 2]}")
          .find("as many as token_values"),
      std::string::npos);
  EXPECT_NE(refusal("nlp_sequence_ratio", "{token_values: [pad]}").find("is no number"),
            std::string::npos);
  EXPECT_NE(refusal("nlp_sequence_ratio", "{token_thresholds_percent: [0]}").find("> 0 … 100"),
            std::string::npos);
  EXPECT_EQ(refusal("nlp_sequence_ratio", "{token_values: [0, 1], token_thresholds_percent: [9]}"),
            "");
}

TEST(NlpSequenceRatio, AsksForTheValuesItCounts) {
  const RowBench rule("nlp_sequence_ratio", "{token_values: [0, 3]}");
  ASSERT_EQ(rule.program().needs.size(), 1U);
  EXPECT_EQ(rule.program().needs[0].collection, "inputs");
  EXPECT_EQ(rule.program().needs[0].statistics, std::vector<std::string>{"values(0, 3)"});
}

}  // namespace
}  // namespace tocsin::rules
