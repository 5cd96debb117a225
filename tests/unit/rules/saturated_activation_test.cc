#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/rule_harness.h"
#include "tests/unit/rules/rule_bench.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Role;
using core::SparseStat;

TensorValues inputs(const std::vector<double>& values, const char* name = "tanh_input_0") {
  return {name, values, Role::activation_in};
}

/// 1000 inputs that repeat these.
TensorValues layer(const std::vector<double>& some, const char* name = "tanh_input_0") {
  TensorValues tensor = inputs({}, name);
  for (std::size_t i = 0; i < 1000; ++i) tensor.values.push_back(some[i % some.size()]);
  return tensor;
}

RowContext beyond(double bound, double count) {
  RowContext with;
  with.sparse = {{SparseStat::abs_ge_count, count, {bound}}};
  return with;
}
RowContext saturated(double units, double count, double lo, double hi, double percent = 1) {
  RowContext with;
  with.sparse = {{SparseStat::unit_count, units},
                 {SparseStat::unit_saturated_count, count, {lo, hi, percent}}};
  return with;
}

RowBench bench(const std::string& with = "{}", const std::string& preset = "tocsin") {
  RowBench rule("saturated_activation", with, preset);
  rule.knows("tanh_input_0", {100, 10}).knows("gate.sigmoid_input_0", {100, 10});
  return rule;
}

TEST(SaturatedActivation, TheDefaultCountsElementsBeyondThree) {
  RowBench rule = bench();
  const std::vector<double> half{3, -3, 0, 0};
  EXPECT_EQ(rule.judge(0, inputs(half), beyond(3, 2)), "ok") << "50 % is the limit";
  EXPECT_EQ(rule.judge(1, inputs({3, -3, 3, 0}), beyond(3, 3)), "hit tanh")
      << "the bounds count as saturated";
  EXPECT_EQ(rule.finding->observed.value, 75);
  EXPECT_EQ(rule.judge(2, inputs({3, -3, 3, 0}), beyond(2, 4)), "insufficient_data")
      << "counted for another bound";
  RowBench gate = bench();
  EXPECT_EQ(gate.judge(0, inputs({3, -3, 3, 0}, "gate.sigmoid_input_0"), beyond(3, 3)),
            "hit sigmoid");
}

TEST(SaturatedActivation, TellsTheSideAsFarAsSignsAndExtremesDo) {
  const auto side = [](const RowBench& rule, const char* which) {
    for (const auto& [name, value] : rule.finding->values) {
      if (name == std::string(which) + "_side_percent_at_most") return *core::as<double>(value);
    }
    return std::nan("");
  };
  RowBench rule = bench();
  EXPECT_EQ(rule.judge(0, inputs({3, 4, 5, -1}), beyond(3, 3)), "hit tanh");
  EXPECT_EQ(side(rule, "low"), 0) << "none is as low as -3";
  EXPECT_EQ(side(rule, "high"), 75);
  EXPECT_EQ(rule.judge(1, inputs({3, -4, -5, -6, 0}), beyond(3, 4)), "hit tanh");
  EXPECT_EQ(side(rule, "low"), 60);
  EXPECT_EQ(side(rule, "high"), 20);
}

TEST(SaturatedActivation, SumsProveMuch) {
  RowBench rule = bench();
  EXPECT_EQ(rule.judge(0, inputs({2.99, -2.99})), "ok") << "none beyond";
  EXPECT_EQ(rule.judge(1, inputs({3, 4})), "hit tanh") << "all of them";
  EXPECT_EQ(rule.judge(2, inputs({3.1, 1, 0.5, -0.5})), "ok") << "mean square 2.8, at most 31 %";
  // Mean magnitude 7.75 of at most 10: (7.75 − 3) / (10 − 3) = 68 % at least.
  EXPECT_EQ(rule.judge(3, inputs({10, -10, 10, 1})), "hit tanh");
  EXPECT_NEAR(rule.finding->observed.value, 100 * 4.75 / 7, 0.01);
  EXPECT_EQ(rule.judge(4, inputs({10, 0, 10, 0, 0})), "insufficient_data");
}

// 100 samples of 10 units.
TEST(SaturatedActivation, OriginalCountsUnits) {
  RowBench rule = bench("{}", "original");
  const TensorValues some = layer({9.6, 0});
  EXPECT_EQ(rule.judge(0, some, saturated(10, 5, -9.4999, 9.4999)), "ok") << "50 % is the limit";
  EXPECT_EQ(rule.judge(1, some, saturated(10, 6, -9.4999, 9.4999)), "hit tanh");
  EXPECT_EQ(rule.finding->observed.value, 60);
  EXPECT_EQ(rule.judge(2, some, saturated(10, 6, -9, 9)), "insufficient_data") << "other bounds";
  EXPECT_EQ(rule.judge(3, layer({9.6})), "hit tanh") << "every input is beyond";
  EXPECT_EQ(rule.judge(4, layer({9.4, -9.4})), "ok") << "none is";
  EXPECT_EQ(rule.judge(5, layer({9.4999, 9.5})), "hit tanh") << "the bound itself counts";
}

TEST(SaturatedActivation, SigmoidHasBoundsOfItsOwn) {
  RowBench rule = bench("{}", "original");
  const char* const gate = "gate.sigmoid_input_0";
  EXPECT_EQ(rule.judge(0, layer({10, 16}, gate)), "ok");
  EXPECT_EQ(rule.judge(1, layer({17, 18}, gate)), "hit sigmoid");
  EXPECT_EQ(rule.judge(2, layer({-22, 0}, gate)), "ok");
  EXPECT_EQ(rule.judge(3, layer({-23, -24}, gate)), "hit sigmoid");
}

TEST(SaturatedActivation, AGradientReplacesTheBounds) {
  // 1 − tanh²x = 0.01 at x = 2.9932; σ(1 − σ) = 0.01 at x = 4.5848.
  RowBench rule = bench("{gradient_threshold: 0.01}", "original");
  EXPECT_EQ(rule.judge(0, layer({2.993, -2.993})), "ok");
  EXPECT_EQ(rule.judge(1, layer({2.9933})), "hit tanh");
  RowBench gate = bench("{gradient_threshold: 0.01}", "original");
  EXPECT_EQ(gate.judge(0, layer({4.584, -4.584}, "gate.sigmoid_input_0")), "ok");
  EXPECT_EQ(gate.judge(1, layer({4.585}, "gate.sigmoid_input_0")), "hit sigmoid");
}

TEST(SaturatedActivation, TheOperatorSaysTheKindElseTheLastWord) {
  RowBench rule("saturated_activation");
  rule.knows("act_input_0", {1, 4}, "Tanh");
  const std::vector<double> wide{5, 5, 5, 5};
  EXPECT_EQ(rule.judge(0, inputs(wide, "act_input_0")), "hit tanh");
  RowBench second("saturated_activation");
  second.knows("rnn.sigmoid_of_tanh_input_0", {1, 4});
  EXPECT_EQ(second.judge(0, inputs(wide, "rnn.sigmoid_of_tanh_input_0")), "hit tanh");
  RowBench neither("saturated_activation", "{tensor_regex: [hidden]}");
  neither.knows("hidden_input_0", {1, 4});
  EXPECT_EQ(neither.judge(0, inputs(wide, "hidden_input_0")), "not_applicable");
}

TEST(SaturatedActivation, NonFiniteSingleAndEmptyTensors) {
  RowBench rule = bench();
  EXPECT_EQ(rule.judge(0, inputs({0, std::nan("")})), "insufficient_data");
  EXPECT_EQ(rule.judge(1, inputs({HUGE_VAL, -HUGE_VAL, 5, 0})), "insufficient_data")
      << "half of them surely";
  EXPECT_EQ(rule.judge(2, inputs({HUGE_VAL, -HUGE_VAL, HUGE_VAL, 0})), "hit tanh")
      << "infinities are saturated";
  EXPECT_EQ(rule.judge(3, inputs({})), "not_applicable");
  rule.knows("tanh_input_0", {});
  EXPECT_EQ(rule.judge(4, inputs({9})), "not_applicable");
}

TEST(SaturatedActivation, AddsStepsUpUntilThereAreEnoughSamples) {
  RowBench rule("saturated_activation", "{min_samples: 4, threshold_inactivity: 50}", "original");
  rule.knows("tanh_input_0", {2, 3});
  EXPECT_EQ(rule.judge(0, inputs(std::vector<double>(6, 10))), "insufficient_data");
  EXPECT_EQ(rule.judge(1, inputs(std::vector<double>(6, 11))), "hit tanh");
  EXPECT_EQ(rule.finding->points, 2U);
  EXPECT_EQ(rule.judge(2, inputs(std::vector<double>(6, 11))), "insufficient_data");
  EXPECT_EQ(rule.judge(3, inputs(std::vector<double>(6, 1))), "insufficient_data")
      << "half of all samples inside: all units or none are at 50 %";
}

// Four units of one sample each are told apart by extremes and sums; of one unit with four they say
// nothing.
TEST(SaturatedActivation, EachWorkerHasItsOwnShapeWhoeverSpokeFirst) {
  const std::string name = "gate.sigmoid_input";
  for (const bool swapped : {false, true}) {
    RuleHarness rule = RuleHarness::of("saturated_activation", "{min_hits: 1}", "original");
    FakeWorker one("digits", "shapes", 0, 2);
    FakeWorker four("digits", "shapes", 1, 2);
    const auto names = [&](FakeWorker& worker, std::int64_t units) {
      rule.feed(worker.dictionary({{core::DictionaryType::tensor,
                                    name,
                                    Role::activation_in,
                                    core::Dtype::f32,
                                    {1, units}}}));
    };
    rule.feed(one.start()).feed(four.start());
    if (swapped) names(four, 4);
    names(one, 1);
    if (!swapped) names(four, 4);
    for (FakeWorker* worker : {&one, &four}) {
      rule.feed(worker->tensors(core::Mode::train, 0, {inputs({-46, 34, 34, 29}, name.c_str())}));
    }
    ASSERT_EQ(rule.firing().size(), 1U) << swapped;
    EXPECT_EQ(rule.firing()[0].labels.get("worker"), "worker_1");
    names(one, 4);  // its tensor is another from here on
    rule.feed(one.tensors(core::Mode::train, 1, {inputs({-46, 34, 34, 29}, name.c_str())}));
    EXPECT_EQ(rule.firing().size(), 2U) << swapped;
  }
}

TEST(SaturatedActivation, RefusesBoundsThatCross) {
  EXPECT_NE(refusal("SaturatedActivation", "{threshold_tanh_min: 4, threshold_tanh_max: 4}")
                .find("threshold_tanh_min"),
            std::string::npos);
  EXPECT_NE(refusal("saturated_activation", "{gradient_threshold: 0.25}").find("< 0.25"),
            std::string::npos);
}

}  // namespace
}  // namespace tocsin::rules
