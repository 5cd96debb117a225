#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/rules/rule_bench.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;

TEST(TensorVariance, RefusesWhatItCannotJudgeBy) {
  EXPECT_NE(refusal("tensor_variance", "{min_threshold: 1}").find("collection_names"),
            std::string::npos);
  EXPECT_NE(refusal("tensor_variance", "{collection_names: [weights]}").find("max_threshold"),
            std::string::npos);
  EXPECT_NE(
      refusal("TensorVariance", "{collection_names: [weights], min_threshold: 2, max_threshold: 2}")
          .find("greater than min_threshold"),
      std::string::npos);
  EXPECT_NE(refusal("tensor_variance", "{collection_names: [weights], min_threshold: -1}")
                .find("must be >= 0"),
            std::string::npos);
  EXPECT_EQ(refusal("Tensor_Variance", "{tensor_regex: [w], max_threshold: 1}"), "");
}

TEST(TensorVariance, ComparesThePopulationVarianceStrictly) {
  RowBench rule("tensor_variance",
                "{collection_names: [weights], min_threshold: 0.25, max_threshold: 4}", "original");
  const auto answer = [&](const std::vector<double>& values) {
    static std::int64_t step = 0;
    return rule.judge(step++, TensorValues{"w", values, Role::weight});
  };
  EXPECT_EQ(answer({0, 4}), "ok") << "variance 4 is the limit";
  EXPECT_EQ(answer({0, 4.001}), "hit high");
  EXPECT_EQ(rule.finding->threshold->name, "max_threshold");
  EXPECT_EQ(answer({0, 1}), "ok") << "variance 0.25 is the limit";
  EXPECT_EQ(answer({0, 0.999}), "hit low");
  EXPECT_NEAR(rule.finding->observed.value, 0.999 * 0.999 / 4, 1e-15);
  EXPECT_EQ(answer({7, 7, 7}), "hit low") << "a constant";
  EXPECT_EQ(rule.finding->observed.value, 0);
}

TEST(TensorVariance, OneLimitIsEnough) {
  RowBench low("tensor_variance", "{collection_names: [weights], min_threshold: 1}", "original");
  EXPECT_EQ(low.judge(0, TensorValues{"w", {-1e9, 1e9}, Role::weight}), "ok");
  RowBench high("tensor_variance", "{collection_names: [weights], max_threshold: 1}", "original");
  EXPECT_EQ(high.judge(0, TensorValues{"w", {1, 1}, Role::weight}), "ok");
}

TEST(TensorVariance, NothingToSpreadAndNothingToCount) {
  RowBench rule("tensor_variance", "{collection_names: [weights], min_threshold: 1}", "original");
  const double nan = std::nan("");
  EXPECT_EQ(rule.judge(0, TensorValues{"w", {3}, Role::weight}), "not_applicable");
  core::SummaryRow empty;
  empty.meta = core::meta::make(core::Dtype::f32, Role::weight);
  EXPECT_EQ(rule.judge(1, empty), "not_applicable");
  EXPECT_EQ(rule.judge(2, TensorValues{"w", {1, nan}, Role::weight}), "insufficient_data");
  EXPECT_EQ(rule.judge(3, TensorValues{"w", {1, HUGE_VAL}, Role::weight}), "insufficient_data");
}

TEST(TensorVariance, TheDefaultLooksAtMatricesOnly) {
  RowBench rule("tensor_variance", "{collection_names: [weights], min_threshold: 1}");
  rule.knows("norm.weight", {4}).knows("fc.weight", {2, 2});
  const std::vector<double> ones{1, 1, 1, 1};
  EXPECT_EQ(rule.judge(0, TensorValues{"norm.weight", ones, Role::weight}), "unselected");
  EXPECT_EQ(rule.judge(0, TensorValues{"unheard.of", ones, Role::weight}), "unselected");
  EXPECT_EQ(rule.judge(0, TensorValues{"fc.weight", ones, Role::weight}), "hit low");
}

TEST(TensorVariance, GradientsAreUnscaledFirst) {
  RowBench rule("tensor_variance", "{collection_names: [gradients], max_threshold: 1}", "original");
  RowContext scaled;
  scaled.loss_scale = 1024;
  const TensorValues gradient{"g", {-1024, 1024}, Role::gradient};  // ±1 once unscaled
  EXPECT_EQ(rule.judge(0, gradient, scaled), "ok");
  EXPECT_EQ(rule.judge(1, TensorValues{"g", {-1030, 1030}, Role::gradient}, scaled), "hit high");
  TensorValues divided = gradient;
  divided.flags = core::meta::kUnscaled;
  EXPECT_EQ(rule.judge(2, divided, scaled), "hit high") << "already divided";
}

TEST(TensorVariance, JudgesEveryModeAndWorkerByItself) {
  RuleHarness rule =
      RuleHarness::of("tensor_variance", "{collection_names: [weights], min_threshold: 1}");
  FakeWorker first("digits", "run", 0, 2);
  FakeWorker second("digits", "run", 1, 2);
  for (FakeWorker* worker : {&first, &second}) {
    rule.feed(worker->dictionary(
        {{core::DictionaryType::tensor, "w", Role::weight, core::Dtype::f32, {2, 1}}}));
  }
  rule.feed(first.tensors(Mode::train, 0, {{"w", {5, 5}, Role::weight}}));
  rule.feed(second.tensors(Mode::train, 0, {{"w", {5, 15}, Role::weight}}));
  rule.feed(second.tensors(Mode::eval, 0, {{"w", {5, 5}, Role::weight}}));
  const auto issues = rule.firing();
  ASSERT_EQ(issues.size(), 2U);
  EXPECT_EQ(issues[0].labels.get("worker"), "worker_0");
  EXPECT_EQ(issues[1].labels.get("mode"), "eval");
  EXPECT_EQ(issues[0].kind, "low");
}

}  // namespace
}  // namespace tocsin::rules
