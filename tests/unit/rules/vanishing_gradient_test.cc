#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/rule_harness.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;

core::SummaryRow small_gradient(const std::string& name, double abs_mean, std::uint64_t flags = 0) {
  return row_of(name, Role::gradient, 100, abs_mean * 10, abs_mean, flags);
}

TEST(VanishingGradient, OneTensorIsEnoughForTheOriginal) {
  RuleHarness rule = RuleHarness::of("vanishing_gradient", "{}", "original");
  FakeWorker worker;
  rule.feed(worker.summary(
      Mode::train, 0,
      {small_gradient("a", 1e-3), small_gradient("b", 9e-8), small_gradient("c", 1e-3),
       small_gradient("d", 1e-3), small_gradient("e", 1e-3)}));
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_DOUBLE_EQ(rule.firing()[0].evidence.observed.value, 9e-8);
}

TEST(VanishingGradient, TheWorstAreToldWithWhatWasObserved) {
  RuleHarness rule = RuleHarness::of("vanishing_gradient", "{}", "original");
  FakeWorker worker;
  rule.feed(worker.summary(Mode::train, 0, {small_gradient("a", 9e-8), small_gradient("b", 2e-8)}));
  ASSERT_EQ(rule.firing().size(), 2U);
  for (const core::Issue& issue : rule.firing()) {
    const auto& worst = issue.evidence.affected.worst;
    ASSERT_EQ(worst.size(), 2U);
    EXPECT_DOUBLE_EQ(worst[0].second, 2e-8);
    EXPECT_DOUBLE_EQ(worst[1].second, 9e-8);
  }
}

TEST(VanishingGradient, SaysWhereOnlyStoredRowsWereMeasured) {
  const auto evidence = [](std::uint64_t flags) {
    RuleHarness rule = RuleHarness::of("vanishing_gradient", "{}", "original");
    FakeWorker worker;
    rule.feed(worker.summary(Mode::train, 0, {small_gradient("a", 9e-8, flags)}));
    return rule.firing().at(0).evidence.values;
  };
  ASSERT_NE(core::find(evidence(core::meta::kSparse), "sparse"), nullptr);
  EXPECT_EQ(core::find(evidence(0), "sparse"), nullptr);
}

TEST(VanishingGradient, AcceptsAMeanExactlyAtTheThreshold) {
  RuleHarness rule = RuleHarness::of("vanishing_gradient", "{threshold: 0.5}", "original");
  FakeWorker worker;
  rule.feed(worker.summary(Mode::train, 0, {small_gradient("a", 0.5)}));
  EXPECT_TRUE(rule.firing().empty());
}

TEST(VanishingGradient, DefaultNeedsAQuarterOfTheWorkersTensors) {
  RuleHarness rule = RuleHarness::of("vanishing_gradient");
  FakeWorker worker;
  rule.feed(worker.summary(Mode::train, 0, {small_gradient("a", 1e-3), small_gradient("b", 0)}));
  // Half of this frame, but a fifth of the step: four more tensors follow in a second frame.
  rule.feed(worker.summary(
      Mode::train, 0,
      {small_gradient("c", 1e-3), small_gradient("d", 1e-3), small_gradient("e", 1e-3)}));
  rule.feed(worker.step_end(Mode::train, 0));
  EXPECT_TRUE(rule.firing().empty());
  rule.feed(worker.summary(
      Mode::train, 1, {small_gradient("a", 0), small_gradient("b", 0), small_gradient("c", 1e-3)}));
  EXPECT_TRUE(rule.firing().empty()) << "the step has not ended";
  rule.feed(worker.step_end(Mode::train, 1));
  ASSERT_EQ(rule.firing().size(), 2U);
  EXPECT_EQ(rule.firing()[0].evidence.affected.hit, 2U);
  EXPECT_EQ(rule.firing()[0].evidence.affected.evaluated, 3U);
  EXPECT_EQ(rule.firing()[0].step, 1);
}

TEST(VanishingGradient, BehindALayerThatStartsAtZeroGradientsAreZeroUntilItMoves) {
  const auto told_at = [](const char* preset) {
    RuleHarness rule = RuleHarness::of("vanishing_gradient", "{}", preset);
    FakeWorker worker;
    core::SummaryRow nothing = small_gradient("a", 0);
    nothing.zero = nothing.count;
    for (std::int64_t step = 0; step < 8; ++step) {
      rule.feed(worker.summary(Mode::train, step, {nothing}));
      rule.feed(worker.step_end(Mode::train, step));
      if (!rule.firing().empty()) return step;
    }
    return std::int64_t{-1};
  };
  EXPECT_EQ(told_at("tocsin"), 5);
  EXPECT_EQ(told_at("original"), 0);
}

TEST(VanishingGradient, ASingleStepOfZerosIsAPartThatWasLeftOut) {
  RuleHarness rule = RuleHarness::of("vanishing_gradient");
  FakeWorker worker;
  core::SummaryRow idle = small_gradient("expert", 0);
  idle.zero = idle.count;
  const auto step = [&](std::int64_t at, const core::SummaryRow& row) {
    rule.feed(worker.summary(Mode::train, at, {row, small_gradient("router", 1)}));
    rule.feed(worker.step_end(Mode::train, at));
    return rule.firing().size();
  };
  for (const std::int64_t at : {10, 20, 30}) EXPECT_EQ(step(at, idle), 0U);
  EXPECT_EQ(step(40, small_gradient("expert", 1)), 0U);
  for (const std::int64_t at : {50, 60}) EXPECT_EQ(step(at, idle), 0U);
  EXPECT_EQ(step(70, idle), 0U) << "60 and 70 are as far apart as 50 and 60, 40 had some";
  EXPECT_EQ(step(80, idle), 1U);
}

TEST(VanishingGradient, WhatFadesWithTheLossHasNotVanished) {
  const auto told = [](double on_the_way) {
    RuleHarness rule = RuleHarness::of("vanishing_gradient");
    FakeWorker worker;
    std::int64_t at = 0;
    for (const double mean : {1e-2, on_the_way, 1e-9, 1e-9}) {
      rule.feed(worker.summary(Mode::train, at, {small_gradient("a", mean)}));
      rule.feed(worker.step_end(Mode::train, at));
      at += 10;
    }
    return rule.firing().size();
  };
  EXPECT_EQ(told(1e-6), 0U);
  EXPECT_EQ(told(1e-5), 1U) << "100 times the limit: it was gone at the next save";
}

TEST(VanishingGradient, BiasesAreLeftOutUnlessTheyAreChosen) {
  const auto told = [](const char* with) {
    RuleHarness rule = RuleHarness::of("vanishing_gradient", with);
    FakeWorker worker;
    rule.feed(
        worker.dictionary({{core::DictionaryType::tensor, "gradient/0.bias", Role::gradient},
                           {core::DictionaryType::tensor, "gradient/0.weight", Role::gradient}}));
    rule.feed(worker.summary(
        Mode::train, 0,
        {small_gradient("gradient/0.bias", 1e-9), small_gradient("gradient/0.weight", 1)}));
    rule.feed(worker.step_end(Mode::train, 0));
    return rule.firing().size();
  };
  EXPECT_EQ(told("{}"), 0U) << "in front of a normalisation";
  EXPECT_EQ(told("{collection_names: [gradients]}"), 1U);
}

TEST(VanishingGradient, TakesTheLossScaleOut) {
  RuleHarness rule = RuleHarness::of("vanishing_gradient", "{}", "original");
  FakeWorker worker;
  rule.feed(worker.scalars(Mode::train, {{"loss_scale", 0, 65536, Role::other}}));
  rule.feed(
      worker.summary(Mode::train, 0, {small_gradient("scaled", 1e-4)}));  // 1.5e-9 after unscaling
  rule.feed(
      worker.summary(Mode::train, 0, {small_gradient("unscaled", 1e-4, core::meta::kUnscaled)}));
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_NEAR(rule.firing()[0].evidence.observed.value, 1e-4 / 65536, 1e-15);
}

TEST(VanishingGradient, NamesTheParameterWhoseGradientItIs) {
  RuleHarness rule = RuleHarness::of("vanishing_gradient", "{}", "original");
  FakeWorker worker;
  rule.feed(worker.dictionary({{core::DictionaryType::tensor, "gradient/0.weight"}}));
  rule.feed(worker.summary(Mode::train, 0, {small_gradient("gradient/0.weight", 0)}));
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_TRUE(rule.firing()[0].summary.starts_with("The gradient of 0.weight has"))
      << rule.firing()[0].summary;
  EXPECT_EQ(rule.firing()[0].labels.get("tensor"), "gradient/0.weight");
}

TEST(VanishingGradient, LeavesNaNToExplodingTensor) {
  RuleHarness rule = RuleHarness::of("vanishing_gradient", "{}", "original");
  FakeWorker worker;
  rule.feed(worker.summary(Mode::train, 0, {small_gradient("a", std::nan(""))}));
  EXPECT_TRUE(rule.firing().empty());
}

TEST(VanishingGradient, IgnoresOtherRolesAndModes) {
  RuleHarness rule = RuleHarness::of("vanishing_gradient", "{}", "original");
  FakeWorker worker;
  rule.feed(worker.summary(Mode::train, 0, {row_of("w", Role::weight, 10, 0, 0)}));
  rule.feed(worker.summary(Mode::eval, 0, {small_gradient("a", 0)}));
  EXPECT_TRUE(rule.firing().empty());
}

TEST(VanishingGradient, KeepsToChosenTensors) {
  RuleHarness rule =
      RuleHarness::of("vanishing_gradient", "{tensor_regex: ['fc[0-9]']}", "original");
  FakeWorker worker;
  rule.feed(worker.summary(Mode::train, 0, {small_gradient("conv", 0), small_gradient("fc1", 0)}));
  EXPECT_TRUE(rule.firing().empty()) << "names are not known yet";
  rule.feed(worker.dictionary({{core::DictionaryType::tensor, "conv", Role::gradient},
                               {core::DictionaryType::tensor, "fc1", Role::gradient}}));
  rule.feed(worker.summary(Mode::train, 1, {small_gradient("conv", 0), small_gradient("fc1", 0)}));
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_EQ(rule.firing()[0].labels.get("tensor"), "fc1");
}

}  // namespace
}  // namespace tocsin::rules
