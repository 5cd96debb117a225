#include <gtest/gtest.h>

#include "tests/unit/rules/node_fixture.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language

const std::string kZero = core_mode("0", "user");
const std::string kOne = core_mode("1", "user");
const std::string kTwo = core_mode("2", "user");

Node cores_node(const std::string& with) { return {"cpu_utilization", with, {kZero, kOne, kTwo}}; }

TEST(CpuUtilization, SaturatedWhenTheMedianOfTheMeanIsAboveTheLimit) {
  Node one = cores_node("{patience: 1}");
  one.sweeps(121, {{kZero, 0.95}, {kOne, 0.89}});
  const auto issues = one.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].kind, "saturated");
  EXPECT_NEAR(issues[0].evidence.observed.value, 92, 1e-9);
  Node limit = cores_node("{patience: 1}");
  limit.sweeps(121, {{kZero, 0.9}});
  EXPECT_TRUE(limit.rule.firing().empty());
}

TEST(CpuUtilization, IdleAndImbalancedAreOffByDefault) {
  Node plain = cores_node("{patience: 1}");
  plain.sweeps(121, {{kZero, 1.0}, {kOne, 0.0}, {kTwo, 0.0}});
  EXPECT_TRUE(plain.rule.firing().empty());
  Node both = cores_node("{patience: 1, threshold_low_p95: 40, core_imbalance: 50}");
  both.sweeps(121, {{kZero, 1.0}, {kOne, 0.0}, {kTwo, 0.0}});
  const auto issues = both.rule.firing();
  ASSERT_EQ(issues.size(), 2U);
  EXPECT_EQ(issues[0].kind, "idle");
  EXPECT_EQ(issues[1].kind, "imbalanced");
  EXPECT_EQ(issues[1].evidence.observed.value, 100);
}

TEST(CpuUtilization, ExactlyTheImbalanceIsFine) {
  Node one = cores_node("{patience: 1, core_imbalance: 50}");
  one.sweeps(121, {{kZero, 0.75}, {kOne, 0.25}, {kTwo, 0.25}});
  EXPECT_TRUE(one.rule.firing().empty());
}

TEST(CpuUtilization, WaitsForMoreThanPatience) {
  Node one = cores_node("{patience: 120}");
  one.sweeps(120, {{kZero, 1.0}});
  one.end();
  EXPECT_EQ(one.rule.rule_state(), "NoData");
}

}  // namespace
}  // namespace tocsin::rules
