#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/rule_harness.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;

/// A booster that sends one round after the other.
struct TreeBooster {
  RuleHarness rule;
  FakeWorker worker;
  std::int64_t round = 0;

  explicit TreeBooster(const std::string& with = "{}", const std::string& preset = "tocsin")
      : rule(RuleHarness::of("tree_depth", with, preset)) {
    rule.feed(worker.dictionary({{core::DictionaryType::scalar, "trees/depth", Role::metric},
                                 {core::DictionaryType::scalar, "trees/leaves", Role::metric},
                                 {core::DictionaryType::scalar, "trees/deepest", Role::metric},
                                 {core::DictionaryType::tensor, "trees/Node", Role::tree}}));
  }
  void depth(double value, Mode mode = Mode::global) {
    rule.feed(worker.scalars(mode, {{"trees/depth", round, value, Role::metric}}));
    rule.feed(worker.step_end(mode, round++));
  }
  void tree(const std::vector<TensorValues>& tensors, const std::vector<Statistic>& sent = {}) {
    std::vector<core::SummaryRow> rows;
    for (const TensorValues& one : tensors) rows.push_back(summarize(one));
    rule.feed(worker.summary(Mode::global, round, rows, sent));
    rule.feed(worker.step_end(Mode::global, round++));
  }
};

TEST(TreeDepth, FiresAboveTheLimitOnly) {
  TreeBooster booster;
  for (int i = 0; i < 10; ++i) booster.depth(4);
  booster.depth(0);  // a single leaf
  EXPECT_TRUE(booster.rule.firing().empty());
  booster.depth(5);
  const auto issues = booster.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].step, 11);
  EXPECT_EQ(issues[0].summary, "A tree has depth 5 (limit 4) at global step 11 on worker_0.");
}

TEST(TreeDepth, WhichTreeAndItsLeavesAreEvidence) {
  TreeBooster booster;
  booster.rule.feed(booster.worker.scalars(Mode::global, {{"trees/depth", 0, 9, Role::metric},
                                                          {"trees/leaves", 0, 31, Role::metric},
                                                          {"trees/deepest", 0, 2, Role::metric}}));
  booster.rule.feed(booster.worker.step_end(Mode::global, 0));
  const auto issues = booster.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  const auto& values = issues[0].evidence.values;
  EXPECT_EQ(*core::as<double>(core::find(values, "leaves")), 31);
  EXPECT_EQ(*core::as<double>(core::find(values, "tree")), 2);
}

TEST(TreeDepth, UnlimitedDepthFiresAtTheFirstRound) {
  TreeBooster booster;
  booster.depth(100);
  ASSERT_EQ(booster.rule.firing().size(), 1U);
  EXPECT_EQ(booster.rule.firing()[0].step, 0);
}

TEST(TreeDepth, OfSeveralTreesTheDeepestCounts) {
  TreeBooster booster;
  booster.tree({{"trees/Yes", {1, 2}, Role::tree}, {"trees/Node", {0, 1}, Role::tree}},
               {{core::SparseStat::depth, 0, 3}, {core::SparseStat::depth, 1, 7}});
  ASSERT_EQ(booster.rule.firing().size(), 1U);
  EXPECT_EQ(booster.rule.firing()[0].evidence.observed.value, 7);
}

TEST(TreeDepth, WithoutPathsTheLargestNodeNumberTells) {
  TreeBooster booster;
  booster.tree(
      {{"trees/Node", {0, 15, 30}, Role::tree}});  // log2(31) = 4.95: a full tree of depth 4
  EXPECT_TRUE(booster.rule.firing().empty());
  booster.tree({{"trees/Node", {0, 15, 31}, Role::tree}});
  ASSERT_EQ(booster.rule.firing().size(), 1U);
  EXPECT_EQ(booster.rule.firing()[0].evidence.observed.value, 5);
}

TEST(TreeDepth, PathsWinOverNodeNumbers) {
  TreeBooster booster;
  booster.tree({{"trees/Node", {0, 1000}, Role::tree}}, {{core::SparseStat::depth, 0, 2}});
  EXPECT_TRUE(booster.rule.firing().empty());
}

TEST(TreeDepth, WhatCannotBeADepthIsInsufficient) {
  TreeBooster booster;
  booster.depth(std::nan(""));
  booster.depth(HUGE_VAL);
  booster.depth(-1);
  booster.tree({{"trees/Gain", {7, 8}, Role::tree}});
  booster.rule.feed(booster.worker.end());
  EXPECT_TRUE(booster.rule.firing().empty());
  EXPECT_EQ(booster.rule.rule_state(), "NoData");
}

TEST(TreeDepth, RoundsAreStepsOfGlobalOrOfTrain) {
  TreeBooster original("{depth: 0}", "original");
  original.depth(1, Mode::train);
  EXPECT_EQ(original.rule.firing().size(), 1U);
  original.depth(1, Mode::global);
  EXPECT_EQ(original.rule.firing().size(), 2U);
  TreeBooster booster("{depth: 0}");
  booster.depth(1, Mode::eval);
  EXPECT_TRUE(booster.rule.firing().empty());
  booster.depth(1, Mode::train);
  ASSERT_EQ(booster.rule.firing().size(), 1U);
  EXPECT_EQ(booster.rule.firing()[0].labels.get("mode"), "train");
}

TEST(TreeDepth, EveryWorkerIsJudgedByItself) {
  RuleHarness rule = RuleHarness::of("tree_depth");
  FakeWorker deep("digits", "two", 1, 2);
  FakeWorker flat("digits", "two", 0, 2);
  rule.feed(deep.dictionary({{core::DictionaryType::scalar, "trees/depth", Role::metric}}));
  rule.feed(flat.scalars(Mode::train, {{"trees/depth", 0, 3, Role::metric}}));
  rule.feed(deep.scalars(Mode::train, {{"trees/depth", 0, 6, Role::metric}}));
  rule.feed(deep.step_end(Mode::train, 0));
  ASSERT_EQ(rule.firing().size(), 1U) << "it does not wait for the other";
  EXPECT_EQ(rule.firing()[0].labels.get("worker"), "worker_1");
}

}  // namespace
}  // namespace tocsin::rules
