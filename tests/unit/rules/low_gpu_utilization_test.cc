#include <gtest/gtest.h>

#include "tests/unit/rules/node_fixture.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language

Node idle_gpu_node(const std::string& with) {
  return {"low_gpu_utilization", with, {gpu("0"), gpu("1")}};
}

TEST(LowGpuUtilization, IsQuietWithBothThresholdsZero) {
  Node one = idle_gpu_node("{threshold_p95: 0, threshold_p5: 0, patience: 0}");
  one.sweeps(300, {{gpu("0"), 0.0}});
  one.end();
  EXPECT_TRUE(one.rule.firing().empty());
  EXPECT_EQ(one.rule.rule_state(), "NoIssuesFound");
}

TEST(LowGpuUtilization, TellsIdleFromUnusedAndJudgesEachGpu) {
  Node one = idle_gpu_node("{patience: 0}");
  one.sweeps(130, {{gpu("0"), 0.4}, {gpu("1"), 0.0}});
  const auto issues = one.rule.firing();
  ASSERT_EQ(issues.size(), 2U);
  EXPECT_EQ(issues[0].kind, "underutilized");
  EXPECT_EQ(issues[0].labels.get("device"), "0");
  EXPECT_EQ(issues[0].labels.get("node"), "node-7");
  EXPECT_EQ(issues[0].evidence.observed.value, 40);
  EXPECT_EQ(issues[1].kind, "unused");
  EXPECT_EQ(issues[1].labels.get("device"), "1");
}

TEST(LowGpuUtilization, OnceUsedIsNotUnused) {
  Node one = idle_gpu_node("{patience: 0, window: 100}");
  one.sweep({{gpu("0"), 0.01}});
  one.sweeps(130, {{gpu("0"), 0.0}});
  ASSERT_FALSE(one.rule.firing().empty());
  EXPECT_EQ(one.rule.firing()[0].kind, "underutilized");
}

TEST(LowGpuUtilization, FluctuatesWhenItReachesTheLimitAndFallsBelowTheOther) {
  Node one = idle_gpu_node("{patience: 0, scan_interval_us: 10000000}");
  for (int i = 0; i < 22; ++i) one.sweep({{gpu("0"), i % 4 == 0 ? 0.05 : 0.7}});
  const auto issues = one.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].kind, "fluctuating") << "exactly threshold_p95 counts as used";
}

TEST(LowGpuUtilization, ExactlyTheLowerThresholdIsNoFluctuation) {
  Node one = idle_gpu_node("{patience: 0}");
  for (int i = 0; i < 130; ++i) one.sweep({{gpu("0"), i % 2 == 0 ? 0.1 : 0.9}});
  EXPECT_TRUE(one.rule.firing().empty());
}

TEST(LowGpuUtilization, WaitsForMoreThanPatience) {
  Node one = idle_gpu_node("{patience: 120}");
  one.sweeps(121, {{gpu("0"), 0.0}});  // the first minute holds exactly 120
  EXPECT_TRUE(one.rule.firing().empty());
  one.sweeps(120, {{gpu("0"), 0.0}});
  EXPECT_EQ(one.rule.firing().size(), 1U);
}

TEST(LowGpuUtilization, LooksAtTheLastWindowOnly) {
  Node one = idle_gpu_node("{patience: 0, window: 50}");
  one.sweeps(60, {{gpu("0"), 0.0}});
  one.sweeps(60, {{gpu("0"), 0.95}});
  one.sweep({{gpu("0"), 0.95}});
  EXPECT_TRUE(one.rule.firing().empty());
}

TEST(LowGpuUtilization, ResolvesWhenTheGpuIsUsedAgain) {
  Node one = idle_gpu_node("{patience: 0, window: 60}");
  one.sweeps(121, {{gpu("0"), 0.2}});
  ASSERT_EQ(one.rule.firing().size(), 1U);
  one.sweeps(4 * 120, {{gpu("0"), 0.95}});
  EXPECT_EQ(one.rule.resolved().size(), 1U);
}

TEST(LowGpuUtilization, HasNoDataWithoutAGpu) {
  Node one{"low_gpu_utilization", "{patience: 0}", {core_mode("0", "user")}};
  one.sweeps(300, {{core_mode("0", "user"), 0.5}});
  one.end();
  EXPECT_EQ(one.rule.rule_state(), "NoData");
}

}  // namespace
}  // namespace tocsin::rules
