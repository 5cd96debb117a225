#include <gtest/gtest.h>

#include "tests/unit/rules/node_fixture.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language

const std::string kProcessMemory = "process.memory.usage{process.pid=4711}";
constexpr double kGiB = 1024.0 * 1024 * 1024;

Node host_memory_node(const std::string& with) {
  return {"host_memory_growth", with, {kProcessMemory}};
}

// One period a second, two samples in each.
const std::string kFast = "warm_up: 10s, points: 5, scan_interval_us: 1000000";

TEST(HostMemoryGrowth, HitsWhenEveryPeriodBringsMore) {
  Node one = host_memory_node("{" + kFast + "}");
  for (int i = 0; i < 60; ++i) one.sweep({{kProcessMemory, kGiB * (1 + 0.02 * i)}});
  const auto issues = one.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].labels.get("device"), "process 4711");
  EXPECT_GT(issues[0].evidence.observed.value, 1.3);
}

TEST(HostMemoryGrowth, WhatAProcessReadsAtItsStartDoesNotCount) {
  Node one = host_memory_node("{" + kFast + "}");
  for (int i = 0; i < 20; ++i) one.sweep({{kProcessMemory, kGiB * (1 + i)}});
  for (int i = 0; i < 60; ++i) one.sweep({{kProcessMemory, kGiB * 21}});
  one.end();
  EXPECT_TRUE(one.rule.firing().empty());
  EXPECT_EQ(one.rule.rule_state(), "NoIssuesFound");
}

TEST(HostMemoryGrowth, UpsAndDownsAreNoGrowth) {
  Node one = host_memory_node("{" + kFast + "}");
  for (int i = 0; i < 120; ++i) {
    one.sweep({{kProcessMemory, kGiB * (1 + 0.02 * i) * (i / 2 % 5 == 0 ? 0.8 : 1)}});
  }
  EXPECT_TRUE(one.rule.firing().empty());
}

TEST(HostMemoryGrowth, ExactlyTheLimitIsNoGrowth) {
  Node one = host_memory_node("{warm_up: 0s, points: 2, growth: 1.5, scan_interval_us: 1000000}");
  for (const double size : {1.0, 1.25, 1.5}) one.sweeps(2, {{kProcessMemory, kGiB * size}});
  one.sweep({{kProcessMemory, kGiB}});
  EXPECT_TRUE(one.rule.firing().empty());
}

}  // namespace
}  // namespace tocsin::rules
