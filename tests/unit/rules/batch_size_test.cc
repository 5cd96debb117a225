#include <gtest/gtest.h>

#include "tests/unit/rules/node_fixture.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language

const std::string kFirstCore = core_mode("0", "user");
const std::string kOtherCore = core_mode("1", "user");

Node batch_node(const std::string& with) {
  return {"batch_size", with, {kFirstCore, kOtherCore, gpu("0"), gpu_memory("0")}};
}
std::vector<std::pair<std::string, double>> use(double cores, double device, double memory) {
  return {{kFirstCore, cores}, {gpu("0"), device}, {gpu_memory("0"), memory}};
}

TEST(BatchSize, HitsWhenAllThreeAreLittleUsed) {
  Node one = batch_node("{patience: 0, window: 100}");
  one.sweeps(121, use(0.2, 0.3, 0.4));
  const auto issues = one.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].labels.get("device"), "0");
  EXPECT_EQ(issues[0].evidence.observed.value, 30);
}

TEST(BatchSize, OneThatReachesItsLimitIsEnough) {
  for (const auto& values : {use(0.7, 0.3, 0.4), use(0.2, 0.7, 0.4), use(0.2, 0.3, 0.7)}) {
    Node one = batch_node("{patience: 0, window: 100}");
    one.sweeps(121, values);
    one.end();
    EXPECT_TRUE(one.rule.firing().empty());
    EXPECT_EQ(one.rule.rule_state(), "NoIssuesFound");
  }
}

TEST(BatchSize, TakesTheMeanOfTheCores) {
  Node one = batch_node("{patience: 0, window: 100}");
  auto values = use(1.0, 0.3, 0.4);
  values.emplace_back(kOtherCore, 0.2);  // mean 60
  one.sweeps(121, values);
  EXPECT_EQ(one.rule.firing().size(), 1U);
}

TEST(BatchSize, NeedsMoreSamplesThanItsWindow) {
  Node one = batch_node("{patience: 0, window: 120}");
  one.sweeps(120, use(0.2, 0.3, 0.4));
  one.end();
  EXPECT_TRUE(one.rule.firing().empty());
  EXPECT_EQ(one.rule.rule_state(), "NoData");
}

TEST(BatchSize, IsNotJudgedWithoutGpuMemory) {
  Node one = batch_node("{patience: 0, window: 10}");
  one.sweeps(121, {{kFirstCore, 0.1}, {gpu("0"), 0.1}});
  one.end();
  EXPECT_EQ(one.rule.rule_state(), "NoData");
}

}  // namespace
}  // namespace tocsin::rules
