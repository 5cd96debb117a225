#include <gtest/gtest.h>

#include "tests/unit/rules/node_fixture.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language

const std::string kWait = core_mode("0", "iowait");
const std::string kUser = core_mode("0", "user");

Node io_node(const std::string& with) { return {"io_bottleneck", with, {gpu("0"), kWait, kUser}}; }

TEST(IoBottleneck, HitsWhenTheGpuWaitsAndACoreWaitsForIo) {
  Node one = io_node("{patience: 0}");
  one.sweeps(121, {{gpu("0"), 0.0}, {kWait, 0.6}, {kUser, 0.1}});
  const auto issues = one.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].evidence.observed.value, 100);
  EXPECT_EQ(issues[0].labels.get("node"), "node-7");
}

TEST(IoBottleneck, ExactlyTheLimitsAreNoBottleneck) {
  Node wait = io_node("{patience: 0}");
  wait.sweeps(121, {{gpu("0"), 0.0}, {kWait, 0.5}});
  EXPECT_TRUE(wait.rule.firing().empty());
  Node busy = io_node("{patience: 0}");
  busy.sweeps(121, {{gpu("0"), 0.1}, {kWait, 0.9}});
  EXPECT_TRUE(busy.rule.firing().empty());
  Node share = io_node("{patience: 0}");
  for (int i = 0; i < 121; ++i) share.sweep({{gpu("0"), i % 2 == 0 ? 0.0 : 0.9}, {kWait, 0.9}});
  EXPECT_TRUE(share.rule.firing().empty()) << "half of the snapshots is not more than half";
}

TEST(IoBottleneck, ABusyCoreIsNoIoWait) {
  Node one = io_node("{patience: 0}");
  one.sweeps(121, {{gpu("0"), 0.0}, {kWait, 0.0}, {kUser, 1.0}});
  EXPECT_TRUE(one.rule.firing().empty());
}

TEST(IoBottleneck, AnIntervalWithoutOneOfItsInputsIsNotJudgedAgain) {
  Node one = io_node("{patience: 0, cooldown: 0s}");
  one.sweeps(120, {{gpu("0"), 0.0}, {kWait, 0.9}});
  one.sweeps(240, {{kWait, 0.9}});  // the GPU is silent
  EXPECT_EQ(one.rule.firing().size(), 1U);
}

TEST(IoBottleneck, ForgetsWhatIsOlderThanItsWindow) {
  Node one = io_node("{patience: 0, window: 100}");
  one.sweeps(60, {{gpu("0"), 0.0}, {kWait, 0.9}});
  one.sweeps(61, {{gpu("0"), 0.9}, {kWait, 0.9}});
  EXPECT_TRUE(one.rule.firing().empty());
}

}  // namespace
}  // namespace tocsin::rules
