#include <gtest/gtest.h>

#include "tests/unit/rules/node_fixture.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language

const std::string kMemory = gpu_memory("0");

Node gpu_memory_node(const std::string& with) { return {"gpu_memory_increase", with, {kMemory}}; }

TEST(GpuMemoryIncrease, HitsFirstAtTheNinthRaisedSampleOfAStepFrom20To26) {
  // Nine raised samples of a window of ten: 20 + 0.9 · 6 − 20 = 5.4 > 5; with eight 4.8.
  for (const int raised : {8, 9}) {
    Node one = gpu_memory_node("{patience: 40, window: 10}");
    one.sweeps(120 - raised, {{kMemory, 0.20}});
    one.sweeps(raised, {{kMemory, 0.26}});
    one.end();
    EXPECT_EQ(one.rule.firing().size(), raised == 9 ? 1U : 0U) << raised;
  }
}

TEST(GpuMemoryIncrease, IsJudgedAtEachSample) {
  Node one = gpu_memory_node("{patience: 40, window: 10}");
  one.sweeps(60, {{kMemory, 0.20}});
  one.sweeps(61, {{kMemory, 0.26}});
  const auto issues = one.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_NEAR(issues[0].evidence.observed.value, 5.4, 1e-9);
  EXPECT_EQ(issues[0].labels.get("device"), "0");
}

TEST(GpuMemoryIncrease, ExactlyTheLimitIsNoIncrease) {
  Node one = gpu_memory_node("{patience: 40, window: 10, increase: 6}");
  one.sweeps(60, {{kMemory, 0.25}});
  one.sweeps(61, {{kMemory, 0.31}});
  EXPECT_TRUE(one.rule.firing().empty());
}

TEST(GpuMemoryIncrease, WaitsForMoreThanPatience) {
  Node one = gpu_memory_node("{patience: 120, window: 10}");
  one.sweeps(100, {{kMemory, 0.2}});
  one.sweeps(20, {{kMemory, 0.9}});  // 120 samples: not more than patience
  one.end();
  EXPECT_TRUE(one.rule.firing().empty());
  EXPECT_EQ(one.rule.rule_state(), "NoData");
}

TEST(GpuMemoryIncrease, FallingMemoryIsFine) {
  Node one = gpu_memory_node("{patience: 0, window: 10}");
  for (int i = 0; i < 121; ++i) one.sweep({{kMemory, 0.9 - 0.005 * i}});
  EXPECT_TRUE(one.rule.firing().empty());
}

}  // namespace
}  // namespace tocsin::rules
