#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/rules/rule_bench.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Role;

TensorValues matrix(double fill, std::size_t n = 65, std::uint64_t flags = 0) {
  return {"fc.weight", std::vector<double>(n, fill), Role::weight, flags};
}

struct Layer {
  RowBench rule{"identical_parameters"};
  Layer() { rule.knows("fc.weight", {13, 5}).knows("norm.weight", {65}); }
};

TEST(IdenticalParameters, OneValueIsNoStart) {
  Layer layer;
  EXPECT_EQ(layer.rule.judge(0, matrix(0.01)), "hit") << "already at the first save";
  TensorValues nearly = matrix(0.01);
  nearly.values[64] = 0.011;
  EXPECT_EQ(layer.rule.judge(1, nearly), "ok");
}

TEST(IdenticalParameters, SmallOnesAndVectorsAreLeftOut) {
  Layer layer;
  EXPECT_EQ(layer.rule.judge(0, matrix(1, 64)), "not_applicable") << "64 elements";
  TensorValues norm = matrix(1);
  norm.name = "norm.weight";
  EXPECT_EQ(layer.rule.judge(0, norm), "unselected");
  norm.role = Role::bias;
  EXPECT_EQ(layer.rule.judge(0, norm), "unselected");
}

TEST(IdenticalParameters, ZerosMayBeMeantUntilTheFirstUpdate) {
  Layer adapter;
  EXPECT_EQ(adapter.rule.judge(0, matrix(0)), "insufficient_data");
  TensorValues moved = matrix(0);
  moved.values[3] = 1e-4;
  EXPECT_EQ(adapter.rule.judge(1, moved), "ok") << "an adapter that starts at zero";

  Layer dead;
  EXPECT_EQ(dead.rule.judge(0, matrix(0)), "insufficient_data");
  EXPECT_EQ(dead.rule.judge(10, matrix(-0.0)), "hit") << "nothing has moved it";
  EXPECT_EQ(dead.rule.finding->first_step, 0);
}

TEST(IdenticalParameters, AScalePerChannelIsAVector) {
  RowBench rule{"identical_parameters"};
  rule.knows("scale", {72, 1, 1}).knows("token", {1, 1, 72}).knows("conv", {36, 1, 2});
  const auto filled = [](const char* name, double value) {
    return TensorValues{name, std::vector<double>(72, value), Role::weight};
  };
  EXPECT_EQ(rule.judge(0, filled("scale", 1e-6)), "not_applicable") << "ConvNeXt's layer scale";
  EXPECT_EQ(rule.judge(0, filled("token", 0.02)), "not_applicable");
  EXPECT_EQ(rule.judge(0, filled("conv", 1e-6)), "hit");
}

TEST(IdenticalParameters, OnesOfThreeDimensionsMayBeGains) {
  RowBench rule{"identical_parameters"};
  rule.knows("norm", {4, 5, 5}).knows("dead", {4, 5, 5}).knows("linear", {10, 10});
  const auto filled = [](const char* name, double value) {
    return TensorValues{name, std::vector<double>(100, value), Role::weight};
  };
  EXPECT_EQ(rule.judge(0, filled("norm", 1)), "insufficient_data");
  TensorValues moved = filled("norm", 1);
  moved.values[7] = 0.999;
  EXPECT_EQ(rule.judge(10, moved), "ok");
  EXPECT_EQ(rule.judge(0, filled("dead", 1)), "insufficient_data");
  EXPECT_EQ(rule.judge(10, filled("dead", 1)), "hit");
  EXPECT_EQ(rule.judge(0, filled("linear", 1)), "hit");
}

TEST(IdenticalParameters, FrozenAndBrokenOnes) {
  Layer layer;
  EXPECT_EQ(layer.rule.judge(0, matrix(1, 65, core::meta::kNotTrainable)), "not_applicable");
  TensorValues broken = matrix(1);
  broken.values[0] = std::nan("");
  EXPECT_EQ(layer.rule.judge(1, broken), "insufficient_data");
  EXPECT_EQ(layer.rule.judge(2, matrix(HUGE_VAL)), "insufficient_data");
}

TEST(IdenticalParameters, BesideAnotherOfItsShapeInItsModuleThatDiffersItIsToldApart) {
  const auto told = [](const TensorValues& beside, std::vector<std::int64_t> shape) {
    RuleHarness rule = RuleHarness::of("identical_parameters");
    FakeWorker worker;
    rule.feed(worker.dictionary(
        {{core::DictionaryType::tensor, "0.spread", Role::weight, core::Dtype::f32, {10, 10}},
         {core::DictionaryType::tensor, beside.name, Role::weight, core::Dtype::f32, shape}}));
    rule.feed(worker.summary(
        core::Mode::train, 0,
        {summarize({"0.spread", std::vector<double>(100, -4), Role::weight}), summarize(beside)}));
    return rule.firing().size();
  };
  TensorValues means{"0.mean", std::vector<double>(100, 0.1), Role::weight};
  means.values[3] = 0.2;
  EXPECT_EQ(told(means, {10, 10}), 0U) << "spreads of weights that are drawn anew";
  EXPECT_EQ(told(means, {20, 5}), 1U) << "of another shape";
  means.name = "1.mean";
  EXPECT_EQ(told(means, {10, 10}), 1U) << "of another module";
  means.name = "0.mean";
  means.values[3] = 0.1;
  EXPECT_EQ(told(means, {10, 10}), 2U) << "neither differs";
}

TEST(IdenticalParameters, OnlyInTraining) {
  Layer layer;
  RowContext evaluation;
  evaluation.mode = core::Mode::eval;
  EXPECT_EQ(layer.rule.judge(0, matrix(1), evaluation), "unselected");
}

}  // namespace
}  // namespace tocsin::rules
