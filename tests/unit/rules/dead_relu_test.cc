#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/rules/rule_bench.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Dtype;
using core::Role;
using core::SparseStat;

constexpr const char* kName = "relu_output_0";

/// A layer with `positive` of its values above 0.
TensorValues layer(std::size_t values, std::size_t positive, const char* name = kName) {
  TensorValues tensor{name, std::vector<double>(values, 0.0), Role::activation_out};
  for (std::size_t i = 0; i < positive; ++i) tensor.values[i] = 1;
  return tensor;
}

RowContext counted(double units, double inactive, double percent = 1) {
  RowContext with;
  with.sparse = {{SparseStat::unit_count, units},
                 {SparseStat::unit_inactive_count, inactive, {percent}}};
  return with;
}

TEST(DeadRelu, CountsDeadUnits) {
  RowBench rule("dead_relu", "{}", "original");
  rule.knows(kName, {200, 10});
  EXPECT_EQ(rule.judge(0, layer(2000, 400), counted(10, 5)), "ok") << "50 % is the limit";
  EXPECT_EQ(rule.judge(1, layer(2000, 400), counted(10, 6)), "hit");
  EXPECT_EQ(rule.finding->observed.value, 60);
  EXPECT_EQ(rule.judge(2, layer(2000, 400), counted(10, 6, 5)), "insufficient_data")
      << "counted for another share of samples";
}

TEST(DeadRelu, TheDefaultToleratesMore) {
  RowBench rule("dead_relu");
  rule.knows(kName, {200, 10});
  EXPECT_EQ(rule.judge(0, layer(2000, 400), counted(10, 6)), "ok");
  EXPECT_EQ(rule.judge(1, layer(2000, 400), counted(10, 7)), "hit");
}

TEST(DeadRelu, NamesTheQuietestChannelsWhereTheyWereMeasured) {
  RuleHarness rule("  - dead_relu");
  FakeWorker worker;
  rule.feed(worker.dictionary(
      {{core::DictionaryType::tensor, kName, Role::activation_out, Dtype::f32, {2, 12, 5}}}));
  std::vector<double> sums(12, 0.0);
  sums[3] = 5;
  sums[11] = 20;
  const std::vector<double> counts(12, 10.0);
  const auto quietest = [&](const std::vector<testing_support::Vector>& vectors) {
    rule.feed(worker.summary(core::Mode::train, 0, {summarize(layer(120, 0))}, {}, vectors));
    const core::Value values(rule.firing().back().evidence.values);
    const core::Value* found = core::find(values, "quietest_channels");
    return found == nullptr ? std::string() : core::to_json(*found);
  };
  EXPECT_EQ(quietest({{core::VectorStat::channel_sum, 0, sums},
                      {core::VectorStat::channel_count, 0, counts}}),
            "[[0,0],[1,0],[2,0],[4,0],[5,0],[6,0],[7,0],[8,0],[9,0],[10,0]]");
}

TEST(DeadRelu, WithoutChannelsNamesNone) {
  RowBench rule("dead_relu");
  rule.knows(kName, {4, 8});
  EXPECT_EQ(rule.judge(0, layer(32, 0)), "hit");
  EXPECT_EQ(core::find(core::Value(rule.finding->values), "quietest_channels"), nullptr);
}

// A layer that starts at zero must be found at step 0.
TEST(DeadRelu, NothingAboveZeroIsAllDead) {
  RowBench rule("dead_relu");
  rule.knows(kName, {4, 8});
  EXPECT_EQ(rule.judge(0, layer(32, 0)), "hit");
  EXPECT_EQ(rule.finding->observed.value, 100);
  RowBench never("dead_relu", "{threshold_inactivity: 0}");
  never.knows(kName, {4, 8});
  EXPECT_EQ(never.judge(0, layer(32, 0)), "ok") << "no share is below 0 %";
}

TEST(DeadRelu, PositiveValuesProveMuch) {
  RowBench rule("dead_relu", "{}", "original");
  rule.knows(kName, {200, 10});
  // 2000 values, 200 samples of 10 units, 1 % = 2 samples: 8 positives belong to 4 living units at
  // most, so 6 of 10 are dead; 30 may belong to 10.
  EXPECT_EQ(rule.judge(0, layer(2000, 8)), "hit");
  EXPECT_NEAR(rule.finding->observed.value, 60, 1e-9);
  EXPECT_EQ(rule.finding->values.back().first, "lower_bound");
  EXPECT_EQ(rule.judge(1, layer(2000, 30)), "insufficient_data");
  // Dead units leave at least 99 % of theirs: 1010 of 2000 can be the inactive values of 5.1 units,
  // 980 of 4.95.
  EXPECT_EQ(rule.judge(2, layer(2000, 990)), "insufficient_data");
  EXPECT_EQ(rule.judge(3, layer(2000, 1020)), "ok");
}

TEST(DeadRelu, OneSampleSaysItExactly) {
  RowBench rule("dead_relu", "{}", "original");
  rule.knows(kName, {1, 10});
  EXPECT_EQ(rule.judge(0, layer(10, 5)), "ok");
  EXPECT_EQ(rule.judge(1, layer(10, 4)), "hit");
  EXPECT_NEAR(rule.finding->observed.value, 60, 1e-9);
}

TEST(DeadRelu, FiltersAreUnitsOfConvolutions) {
  RowBench rule("dead_relu", "{}", "original");
  rule.knows(kName, {1, 4, 5, 5});
  // Four channels of 25 samples each: three positives can keep three of them alive.
  EXPECT_EQ(rule.judge(0, layer(100, 3)), "insufficient_data");
  EXPECT_EQ(rule.judge(1, layer(100, 3), counted(4, 3)), "hit");
  RowBench elements("dead_relu", "{unit_axis: element}", "original");
  elements.knows(kName, {1, 4, 5, 5});
  EXPECT_EQ(elements.judge(0, layer(100, 3), counted(4, 1)), "hit")
      << "a count of channels is none of elements, and of one sample each 97 % are dead";
}

TEST(DeadRelu, AddsStepsUpUntilThereAreEnoughSamples) {
  RowBench rule("dead_relu", "{min_samples: 6, threshold_inactivity: 50}", "original");
  rule.knows(kName, {2, 10});
  EXPECT_EQ(rule.judge(0, layer(20, 0)), "insufficient_data") << "2 samples of each";
  TensorValues broken = layer(20, 0);
  broken.values[0] = std::nan("");
  EXPECT_EQ(rule.judge(1, broken), "insufficient_data") << "adds nothing";
  EXPECT_EQ(rule.judge(2, layer(20, 0)), "insufficient_data");
  EXPECT_EQ(rule.judge(3, layer(20, 2)), "hit") << "6 samples; 2 of 60 above 0";
  EXPECT_EQ(rule.finding->first_step, 0);
  EXPECT_EQ(rule.finding->points, 3U);
  EXPECT_EQ(rule.judge(4, layer(20, 0)), "insufficient_data") << "a new window";
  EXPECT_EQ(rule.judge(5, layer(20, 0), counted(5, 5, 50)), "insufficient_data")
      << "4 samples of 5 units; another number of them starts anew";
  EXPECT_EQ(rule.judge(6, layer(20, 20), counted(5, 5, 50)), "insufficient_data")
      << "8 samples, half of them above 0: none of the units is below 50 %, or all but one are";
}

TEST(DeadRelu, ChoosesByNameAndByOperator) {
  RowBench rule("dead_relu");
  rule.knows("block.ReLU_output_0", {1, 4})
      .knows("features.2_output_0", {1, 4}, "relu6")
      .knows("features.3_output_0", {1, 4}, "GELU")
      .knows("features.2_input_0", {1, 4}, "ReLU")
      .knows("features.4_output_0", {1, 4}, "ReLU");
  EXPECT_EQ(rule.judge(0, layer(4, 4, "block.ReLU_output_0")), "ok");
  EXPECT_EQ(rule.judge(0, layer(4, 4, "features.2_output_0")), "ok");
  EXPECT_EQ(rule.judge(0, layer(4, 4, "features.3_output_0")), "unselected");
  TensorValues input = layer(4, 4, "features.2_input_0");
  input.role = Role::activation_in;
  EXPECT_EQ(rule.judge(0, input), "unselected");
  TensorValues plain = layer(4, 4, "features.4_output_0");
  plain.role = Role::other;
  EXPECT_EQ(rule.judge(0, plain), "ok") << "`output` in the name of a tensor without a role";
}

TEST(DeadRelu, SingleEmptyAndBrokenTensors) {
  RowBench rule("dead_relu");
  rule.knows(kName, {});
  EXPECT_EQ(rule.judge(0, layer(1, 0)), "not_applicable");
  EXPECT_EQ(rule.judge(1, layer(0, 0)), "not_applicable");
  rule.knows(kName, {2, 2});
  TensorValues broken = layer(4, 0);
  broken.values[2] = std::nan("");
  EXPECT_EQ(rule.judge(2, broken), "insufficient_data");
  TensorValues infinite = layer(4, 4);
  infinite.values[0] = HUGE_VAL;
  EXPECT_EQ(rule.judge(3, infinite), "ok") << "+Inf is positive";
}

TEST(DeadRelu, JudgesWorkersAndModesByThemselves) {
  RuleHarness rule = RuleHarness::of("dead_relu");
  FakeWorker first("digits", "run", 0, 2);
  FakeWorker second("digits", "run", 1, 2);
  for (FakeWorker* worker : {&first, &second}) {
    rule.feed(worker->dictionary(
        {{core::DictionaryType::tensor, kName, Role::activation_out, Dtype::f32, {4, 8}}}));
  }
  rule.feed(first.tensors(core::Mode::train, 0, {layer(32, 30)}));
  rule.feed(second.tensors(core::Mode::train, 0, {layer(32, 0)}));
  rule.feed(second.tensors(core::Mode::eval, 0, {layer(32, 0)}));
  ASSERT_EQ(rule.firing().size(), 2U);
  EXPECT_EQ(rule.firing()[0].labels.get("worker"), "worker_1");
}

}  // namespace
}  // namespace tocsin::rules
