#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "tests/unit/rules/rule_bench.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Dtype;
using core::Role;
using core::SparseStat;

constexpr const char* kWeights = "{collection_names: [weights]}";

/// A tensor of two elements with its digest; 0: none was asked for.
struct Saves {
  RowBench rule;
  std::int64_t step = 0;
  explicit Saves(const std::string& with = kWeights) : rule("unchanged_tensor", with) {}

  std::string operator()(const std::vector<double>& values, std::uint64_t digest = 0,
                         std::vector<RowContext::Sparse> sparse = {}, Dtype dtype = Dtype::f32) {
    RowContext with;
    with.sparse = std::move(sparse);
    if (digest != 0) with.sparse.push_back({SparseStat::digest, std::bit_cast<double>(digest)});
    return rule.judge(step++, TensorValues{"w", values, Role::weight, 0, dtype}, with);
  }
};

TEST(UnchangedTensor, RefusesToStartWithoutASelectorOrWindow) {
  EXPECT_NE(refusal("unchanged_tensor", "{}").find("collection_names"), std::string::npos);
  EXPECT_NE(refusal("UnchangedTensor", "{tensor_regex: [w], num_steps: 1}").find("num_steps"),
            std::string::npos);
}

// The vector of the specification: ones at 0, 1 and 2, another tensor once at 5.
TEST(UnchangedTensor, HitsAtTheThirdEqualValue) {
  RuleHarness rule = RuleHarness::of("unchanged_tensor", kWeights);
  FakeWorker worker;
  const auto save = [&](std::int64_t step, const char* name) {
    rule.feed(worker.summary(core::Mode::train, step, {summarize({name, {1, 1}, Role::weight})},
                             {{SparseStat::digest, 0, std::bit_cast<double>(77UL)}}));
  };
  save(0, "w");
  save(1, "w");
  EXPECT_TRUE(rule.firing().empty());
  save(2, "w");
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_EQ(rule.firing()[0].step, 2);
  EXPECT_EQ(rule.firing()[0].evidence.window.first, 0);
  EXPECT_EQ(rule.firing()[0].evidence.window.points, 3U);
  save(5, "other");
  EXPECT_EQ(rule.firing().size(), 1U);
}

TEST(UnchangedTensor, EveryEarlierValueMustAgreeWithTheNewest) {
  Saves save;
  EXPECT_EQ(save({1, 2}, 7), "insufficient_data");
  EXPECT_EQ(save({1, 2}, 7), "insufficient_data");
  EXPECT_EQ(save({1, 2}, 7), "hit");
  EXPECT_EQ(save({1, 3}, 8), "ok");
  EXPECT_EQ(save({1, 2}, 7), "ok") << "as at first, but not as just before";
  EXPECT_EQ(save({1, 2}, 7), "ok");
  EXPECT_EQ(save({1, 2}, 7), "hit");
}

TEST(UnchangedTensor, WithoutADigestEqualSumsProveNothing) {
  Saves save;
  save({1, 2});
  save({2, 1});
  EXPECT_EQ(save({1, 2}), "insufficient_data") << "the columns are the same";
  EXPECT_EQ(save({1, 2.1}), "ok") << "the largest element differs";
  // Other digests, but all within what the tolerance may hide.
  Saves close;
  close({1, 2}, 1);
  close({1, 2.000001}, 2);
  EXPECT_EQ(close({1, 2}, 1), "insufficient_data");
}

TEST(UnchangedTensor, TolerancesOfZeroLeaveNoRoom) {
  Saves save("{collection_names: [weights], rtol: 0, atol: 0, num_steps: 2}");
  save({1, 2}, 1);
  EXPECT_EQ(save({2, 1}, 2), "ok");
  EXPECT_EQ(save({2, 1}, 2), "hit");
}

TEST(UnchangedTensor, DeltasProveIt) {
  const auto delta = [](double norm, std::int64_t from) {
    return std::vector<RowContext::Sparse>{
        {SparseStat::delta_l2, norm}, {SparseStat::delta_from_step, static_cast<double>(from)}};
  };
  Saves save("{collection_names: [weights], atol: 1e-3, rtol: 0}");
  save({1, 2});
  save({1, 2}, 0, delta(0, 0));
  EXPECT_EQ(save({1, 2}, 0, delta(0, 1)), "hit");
  EXPECT_EQ(save({1, 2.0005}, 0, delta(5e-4, 2)), "hit") << "within atol of all of them";
  EXPECT_EQ(save({1, 2.001}, 0, delta(6e-4, 3)), "insufficient_data")
      << "two ways of 5e-4 and 6e-4 may add up to more than atol";
  EXPECT_EQ(save({1, 2.01}, 0, delta(9e-3, 4)), "ok");
}

TEST(UnchangedTensor, ExcessOverTheToleranceIsAcceptedInAChain) {
  const auto excess = [](double value, std::int64_t from, double rtol = 1e-5) {
    return std::vector<RowContext::Sparse>{
        {SparseStat::delta_excess, value, {rtol}},
        {SparseStat::delta_from_step, static_cast<double>(from)}};
  };
  Saves save;
  save({1, 2});
  save({1, 2}, 0, excess(0, 0));
  EXPECT_EQ(save({1, 2}, 0, excess(1e-9, 1)), "hit");
  ASSERT_TRUE(save.rule.finding);
  EXPECT_EQ(save.rule.finding->values.back().first, "approximate");
  EXPECT_EQ(save({1, 2}, 0, excess(2e-8, 2)), "ok") << "more than atol";
  EXPECT_EQ(save({1, 2}, 0, excess(0, 3, 1e-3)), "insufficient_data") << "of another tolerance";
}

TEST(UnchangedTensor, SingleValuesAreComparedAsTheyAre) {
  Saves save("{tensor_regex: [w], num_steps: 2}");
  save.rule.knows("w", {});
  EXPECT_EQ(save({1000}), "insufficient_data");
  EXPECT_EQ(save({1000.0099}), "hit") << "within 1e-5 of the newest";
  EXPECT_EQ(save({1000.03}), "ok");
  EXPECT_EQ(save({HUGE_VAL}), "ok");
  EXPECT_EQ(save({HUGE_VAL}), "hit") << "infinities agree exactly";
  EXPECT_EQ(save({-HUGE_VAL}), "ok");
}

TEST(UnchangedTensor, IntegersAgreeExactly) {
  Saves save("{tensor_regex: [w], num_steps: 2, rtol: 0.1}");
  save.rule.knows("w", {});
  save({1000}, 0, {}, Dtype::i64);
  EXPECT_EQ(save({1001}, 0, {}, Dtype::i64), "ok");
  EXPECT_EQ(save({1001}, 0, {}, Dtype::i64), "hit");
}

TEST(UnchangedTensor, NaNAgreesOnlyWhenAsked) {
  const double nan = std::nan("");
  Saves strict("{collection_names: [weights], num_steps: 2}");
  strict({1, nan}, 5);
  EXPECT_EQ(strict({1, nan}, 5), "ok");
  Saves equal("{collection_names: [weights], num_steps: 2, equal_nan: true}");
  equal({1, nan}, 5);
  EXPECT_EQ(equal({1, nan}, 5), "hit");
  EXPECT_EQ(equal({nan, nan}, 6), "ok") << "another number of them";
}

TEST(UnchangedTensor, AnotherShapeHasChanged) {
  Saves save("{collection_names: [weights], num_steps: 2}");
  save({1, 1}, 5);
  EXPECT_EQ(save({1, 1, 1}, 5), "ok") << "another number of elements";
  save.rule.knows("w", {3, 1});
  save({1, 1, 1}, 5);
  save.rule.knows("w", {1, 3});
  EXPECT_EQ(save({1, 1, 1}, 5), "ok") << "the same number, other dimensions";
}

TEST(UnchangedTensor, EmptyTensorsAndEvaluationsDoNotCount) {
  Saves save("{collection_names: [weights], num_steps: 2}");
  core::SummaryRow empty;
  empty.name = core::name_hash("w");
  empty.meta = core::meta::make(Dtype::f32, Role::weight);
  EXPECT_EQ(save.rule.judge(0, empty), "not_applicable");
  RowContext evaluation;
  evaluation.mode = core::Mode::eval;
  EXPECT_EQ(save.rule.judge(0, TensorValues{"w", {1}, Role::weight}, evaluation), "unselected");
}

TEST(UnchangedTensor, LongWindowsAreRemembered) {
  Saves save("{collection_names: [weights], num_steps: 200}");
  for (int i = 0; i < 199; ++i) ASSERT_EQ(save({1, 2}, 9), "insufficient_data") << i;
  EXPECT_EQ(save({1, 2}, 9), "hit");
  EXPECT_EQ(save({3, 2}, 10), "ok");
  for (int i = 0; i < 198; ++i) ASSERT_EQ(save({3, 2}, 10), "ok") << i;
  EXPECT_EQ(save({3, 2}, 10), "hit");
}

}  // namespace
}  // namespace tocsin::rules
