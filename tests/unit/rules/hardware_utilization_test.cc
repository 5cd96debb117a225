#include <gtest/gtest.h>

#include "tests/unit/rules/node_fixture.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language

const std::string kUserShare = core_mode("0", "user");
const std::string kWaitShare = core_mode("0", "iowait");
const std::string kHostMemory = "system.memory.utilization{system.memory.state=used}";

Node hardware_node(const std::string& with) {
  return {"hardware_utilization",
          with,
          {gpu("0"), gpu("1"), gpu_memory("0"), kUserShare, kWaitShare, kHostMemory}};
}

TEST(HardwareUtilization, JudgesEachResourceByItsOwnLimits) {
  Node one = hardware_node("{patience: 1}");
  one.sweeps(121, {{gpu("0"), 0.4}, {gpu("1"), 0.1}, {gpu_memory("0"), 0.98}, {kHostMemory, 0.96}});
  const auto issues = one.rule.firing();
  ASSERT_EQ(issues.size(), 3U);
  EXPECT_EQ(issues[0].labels.get("device"), "cpu_memory");
  EXPECT_EQ(issues[0].kind, "over");
  EXPECT_EQ(issues[1].labels.get("device"), "gpu");
  EXPECT_EQ(issues[1].kind, "under");
  EXPECT_EQ(issues[1].evidence.observed.value, 25) << "the mean over devices";
  EXPECT_EQ(issues[2].labels.get("device"), "gpu_memory");
}

TEST(HardwareUtilization, ExactlyTheLimitIsFine) {
  Node one = hardware_node("{patience: 1}");
  one.sweeps(121,
             {{gpu("0"), 0.3}, {gpu_memory("0"), 0.97}, {kHostMemory, 0.95}, {kUserShare, 0.95}});
  EXPECT_TRUE(one.rule.firing().empty());
}

TEST(HardwareUtilization, IoWaitIsJudgedWhenAskedFor) {
  Node plain = hardware_node("{patience: 1}");
  plain.sweeps(121, {{kWaitShare, 0.9}});
  EXPECT_TRUE(plain.rule.firing().empty());
  Node asked = hardware_node("{patience: 1, resources: [io_wait]}");
  asked.sweeps(121, {{kWaitShare, 0.9}});
  EXPECT_EQ(asked.rule.firing().size(), 1U);
}

TEST(HardwareUtilization, AGivenLimitReplacesOneAndNullRemovesIt) {
  Node one = hardware_node("{patience: 1, low_p95: {gpu: null, cpu: 50}}");
  one.sweeps(121, {{gpu("0"), 0.0}, {kUserShare, 0.4}});
  const auto issues = one.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].labels.get("device"), "cpu");
}

}  // namespace
}  // namespace tocsin::rules
