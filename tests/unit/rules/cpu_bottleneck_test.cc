#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/rule_harness.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language

constexpr std::int64_t kMinute = 60 * kSecond;
const std::string kGpu = "hw.gpu.utilization{hw.id=0}";
const std::string kUserTime = "system.cpu.utilization{cpu.logical_number=0,cpu.mode=user}";
const std::string kIdle = "system.cpu.utilization{cpu.logical_number=1,cpu.mode=idle}";
const std::string kWaiting = "system.cpu.utilization{cpu.logical_number=1,cpu.mode=iowait}";

struct GpuAndCore {
  RuleHarness rule;
  FakeWorker agent{"digits", "exploding", core::kNodeAgentRank};
  std::int64_t time = kStart - kStart % kMinute;

  explicit GpuAndCore(const std::string& with) : rule(RuleHarness::of("cpu_bottleneck", with)) {
    agent.header.worker = core::name_hash("node-7");
    std::vector<Entry> names{{core::DictionaryType::node, "node-7"}};
    for (const auto& series : {kGpu, kUserTime, kIdle, kWaiting}) {
      names.push_back({core::DictionaryType::series, series});
    }
    rule.feed(agent.dictionary(names));
  }
  void sweep(std::vector<std::pair<std::string, double>> values) {
    std::vector<Sample> samples;
    for (const auto& [series, ratio] : values) samples.push_back({series, time, ratio});
    rule.feed(agent.system(samples));
    time += kSecond / 2;
  }
};

TEST(CpuBottleneck, HitsInEveryEvaluationWhenNearlyEverySnapshotQualifies) {
  GpuAndCore node("{gpu_threshold: 100, cpu_threshold: 0, patience: 0, cooldown: 0s}");
  for (int i = 0; i < 361; ++i)
    node.sweep({{kGpu, 0.5}, {kUserTime, 0.5}});  // three minutes and more
  const auto issues = node.rule.firing();
  ASSERT_EQ(issues.size(), 3U);
  EXPECT_EQ(issues[0].labels.get("node"), "node-7");
  EXPECT_EQ(core::nanoseconds(issues[0].time), kStart - kStart % kMinute + kMinute);
  EXPECT_EQ(issues[0].evidence.observed.value, 100);
}

TEST(CpuBottleneck, WaitsForPatience) {
  GpuAndCore node("{patience: 120, scan_interval_us: 1000000}");
  for (int i = 0; i < 122; ++i) node.sweep({{kGpu, 0.0}, {kUserTime, 0.95}});
  EXPECT_TRUE(node.rule.firing().empty());
  for (int i = 0; i < 4; ++i) node.sweep({{kGpu, 0.0}, {kUserTime, 0.95}});
  EXPECT_EQ(node.rule.firing().size(), 1U);
}

TEST(CpuBottleneck, IsQuietWhenTheGpuIsBusyOrTheCoresAreNot) {
  GpuAndCore busy("{patience: 0}");
  for (int i = 0; i < 300; ++i) busy.sweep({{kGpu, 0.9}, {kUserTime, 0.99}});
  EXPECT_TRUE(busy.rule.firing().empty());
  GpuAndCore idle("{patience: 0}");
  for (int i = 0; i < 300; ++i) idle.sweep({{kGpu, 0.0}, {kUserTime, 0.5}});
  EXPECT_TRUE(idle.rule.firing().empty());
}

TEST(CpuBottleneck, BusyIsWhatIsNeitherIdleNorWaiting) {
  GpuAndCore node("{patience: 0}");
  for (int i = 0; i < 300; ++i) node.sweep({{kGpu, 0.0}, {kIdle, 0.02}, {kWaiting, 0.5}});
  EXPECT_TRUE(node.rule.firing().empty());
  GpuAndCore saturated("{patience: 0}");
  for (int i = 0; i < 300; ++i) saturated.sweep({{kGpu, 0.0}, {kIdle, 0.02}, {kWaiting, 0.01}});
  EXPECT_EQ(saturated.rule.firing().size(), 1U);
}

TEST(CpuBottleneck, DoesNotApplyWithoutAGpu) {
  GpuAndCore node("{patience: 0}");
  for (int i = 0; i < 300; ++i) node.sweep({{kUserTime, 0.99}});
  node.rule.feed(FakeWorker().end());
  EXPECT_TRUE(node.rule.firing().empty());
  EXPECT_EQ(node.rule.rule_state(), "NoData");
}

TEST(CpuBottleneck, DiscardsNaNAndNegativeSamples) {
  GpuAndCore node("{patience: 0}");
  for (int i = 0; i < 300; ++i) node.sweep({{kGpu, std::nan("")}, {kGpu, -1}, {kUserTime, 0.99}});
  EXPECT_TRUE(node.rule.firing().empty());
  EXPECT_EQ(node.rule.engine().stats().discarded_samples, 600U);
}

TEST(CpuBottleneck, CanLookAtTheMeanAndAtAWindow) {
  GpuAndCore mean("{patience: 0, cpu_aggregate: mean}");
  for (int i = 0; i < 300; ++i) mean.sweep({{kGpu, 0.0}, {kUserTime, 0.99}, {kIdle, 0.9}});
  EXPECT_TRUE(mean.rule.firing().empty());
  // A bad beginning is forgotten: of the last 100 snapshots none is a bottleneck.
  GpuAndCore window("{patience: 200, window: 100}");
  for (int i = 0; i < 150; ++i) window.sweep({{kGpu, 0.0}, {kUserTime, 0.99}});
  for (int i = 0; i < 101; ++i) window.sweep({{kGpu, 0.9}, {kUserTime, 0.99}});
  EXPECT_TRUE(window.rule.firing().empty());
}

TEST(CpuBottleneck, SamplesMoreThanTwentyMillisecondsApartAreTwoSnapshots) {
  GpuAndCore node("{patience: 0, gpu_threshold: 100, cpu_threshold: 0}");
  for (int i = 0; i < 200; ++i) {
    node.sweep({{kGpu, 0.5}});
    node.time -= kSecond / 2 - 30'000'000;
    node.sweep({{kUserTime, 0.5}});
  }
  EXPECT_TRUE(node.rule.firing().empty()) << "no snapshot holds both";
}

}  // namespace
}  // namespace tocsin::rules
