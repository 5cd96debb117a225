#include <gtest/gtest.h>

#include "tests/unit/rules/node_fixture.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language

Node balanced_node(const std::string& with) {
  return {"load_balancing", with, {gpu("0"), gpu("1"), gpu("2")}};
}

TEST(LoadBalancing, AnUnusedGpuDiffersAsFarAsTwoCan) {
  Node one = balanced_node("{patience: 1}");
  one.sweeps(121, {{gpu("0"), 0.0}, {gpu("1"), 1.0}});
  const auto issues = one.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].kind, "unused");
  EXPECT_NEAR(issues[0].evidence.observed.value, 0.8326, 1e-4);
}

TEST(LoadBalancing, TwoThatAreNeverUsedDoNotDiffer) {
  Node one = balanced_node("{patience: 1}");
  one.sweeps(121, {{gpu("0"), 0.0}, {gpu("1"), 0.0}});
  one.end();
  EXPECT_TRUE(one.rule.firing().empty());
  EXPECT_EQ(one.rule.rule_state(), "NoIssuesFound");
}

TEST(LoadBalancing, TellsTheFarthestPairOfEachKind) {
  Node one = balanced_node("{patience: 1}");
  one.sweeps(121, {{gpu("0"), 0.0}, {gpu("1"), 1.0}, {gpu("2"), 0.5}});
  const auto issues = one.rule.firing();
  ASSERT_EQ(issues.size(), 2U);
  EXPECT_EQ(issues[0].kind, "unused");
  EXPECT_EQ(issues[1].kind, "imbalanced");
}

TEST(LoadBalancing, EqualLoadsAreFineAndHalfADistanceIsNot) {
  Node equal = balanced_node("{patience: 1}");
  for (int i = 0; i < 121; ++i)
    equal.sweep({{gpu("0"), 0.01 * (i % 90)}, {gpu("1"), 0.01 * (i % 90)}});
  EXPECT_TRUE(equal.rule.firing().empty());
  // Half of the samples shared: distance √(ln 2 / 2) = 0.5887.
  Node half = balanced_node("{patience: 1, threshold: 0.58}");
  for (int i = 0; i < 121; ++i)
    half.sweep({{gpu("0"), i % 2 == 0 ? 0.9 : 0.1}, {gpu("1"), i % 2 == 0 ? 0.9 : 0.5}});
  EXPECT_EQ(half.rule.firing().size(), 1U);
}

TEST(LoadBalancing, DoesNotApplyToOneGpu) {
  Node one = balanced_node("{patience: 1}");
  one.sweeps(121, {{gpu("0"), 0.5}});
  one.end();
  EXPECT_EQ(one.rule.rule_state(), "NoData");
}

TEST(LoadBalancing, LeavesOutAGpuThatIsSilent) {
  Node one = balanced_node("{patience: 1, cooldown: 0s}");
  one.sweeps(120, {{gpu("0"), 0.5}, {gpu("1"), 0.5}});
  one.sweeps(121, {{gpu("0"), 1.0}});  // the other is gone: nothing to compare with
  EXPECT_TRUE(one.rule.firing().empty());
}

// Samples every 10 s (collect.interval): the newest is usually older than ten periods of 500 ms.
TEST(LoadBalancing, SamplesThatAreTakenRarelyAreNoSilence) {
  Node one = balanced_node("{patience: 1, cooldown: 0s}");
  one.time += 4 * kSecond;
  for (int i = 0; i < 14; ++i) {
    one.time += 10 * kSecond - kSecond / 2;
    one.sweep({{gpu("0"), 0.0}, {gpu("1"), 1.0}});
  }
  ASSERT_FALSE(one.rule.firing().empty());
  EXPECT_EQ(one.rule.firing()[0].kind, "unused");
}

TEST(LoadBalancing, OfRareSamplesTenPeriodsWithoutOneAreASilence) {
  Node one = balanced_node("{patience: 1, cooldown: 0s, clear_after: 1}");
  const auto minutes = [&](int sweeps, bool both) {
    for (int i = 0; i < sweeps; ++i) {
      one.time += 10 * kSecond - kSecond / 2;
      if (both) {
        one.sweep({{gpu("0"), 0.0}, {gpu("1"), 1.0}});
      } else {
        one.sweep({{gpu("1"), 1.0}});
      }
    }
  };
  one.time += 4 * kSecond;
  minutes(13, true);  // its last one 133.5 s after the start
  EXPECT_EQ(one.rule.firing().size(), 2U);
  minutes(12, false);  // at 180 s it is still compared, at 240 s it has said nothing for 106.5 s
  EXPECT_EQ(one.rule.firing().size(), 3U);
  minutes(30, false);
  EXPECT_EQ(one.rule.firing().size(), 3U);
}

}  // namespace
}  // namespace tocsin::rules
