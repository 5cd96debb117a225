#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/rule_harness.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;

struct FlatTrees {
  RuleHarness rule;
  FakeWorker worker;
  std::int64_t round = 0;

  explicit FlatTrees(const std::string& with = "{}")
      : rule(RuleHarness::of("tree_without_split", with)) {
    rule.feed(worker.dictionary({{core::DictionaryType::scalar, "trees/depth", Role::metric}}));
  }
  void depth(double value, int times = 1) {
    for (int i = 0; i < times; ++i) {
      rule.feed(worker.scalars(Mode::global, {{"trees/depth", round, value, Role::metric}}));
      rule.feed(worker.step_end(Mode::global, round++));
    }
  }
};

TEST(TreeWithoutSplit, FiresAtTheFifthLeaf) {
  FlatTrees booster;
  booster.depth(0, 4);
  EXPECT_TRUE(booster.rule.firing().empty());
  booster.depth(0);
  const auto issues = booster.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].step, 4);
  EXPECT_EQ(issues[0].summary,
            "No tree has split its samples in 5 rounds up to global step 4 on worker_0: all "
            "samples get the same answer.");
}

TEST(TreeWithoutSplit, ATreeThatSplitsIsEnough) {
  FlatTrees booster;
  booster.depth(0, 4);
  booster.depth(1);
  booster.depth(0, 20);
  EXPECT_TRUE(booster.rule.firing().empty());
}

TEST(TreeWithoutSplit, ADepthThatIsNoNumberDoesNotCount) {
  FlatTrees booster("{rounds: 2}");
  booster.depth(0);
  booster.depth(std::nan(""), 5);
  EXPECT_TRUE(booster.rule.firing().empty());
  booster.depth(0);
  EXPECT_EQ(booster.rule.firing().size(), 1U);
}

}  // namespace
}  // namespace tocsin::rules
