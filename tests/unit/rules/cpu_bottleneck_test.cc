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

// Steps of a second: 0.6 s wait for data, 0.4 s forward. Their spans come when the step is over, behind
// its samples.
TEST(CpuBottleneck, SaysWhatWasUnderWayAtTheBottlenecks) {
  GpuAndCore node("{patience: 0, cooldown: 0s}");
  FakeWorker worker;
  FakeWorker elsewhere("digits", "exploding", 1, 2);
  node.rule.feed(worker.start(R"(,"node":"node-7")"));
  node.rule.feed(elsewhere.start(R"(,"node":"node-8")"));
  node.rule.feed(worker.dictionary({{core::DictionaryType::track, "phase"},
                                    {core::DictionaryType::track, "op.cpu"},
                                    {core::DictionaryType::span_name, "data_wait"},
                                    {core::DictionaryType::span_name, "forward"},
                                    {core::DictionaryType::span_name, "decode"},
                                    {core::DictionaryType::span_name, "optimizer"}}));
  for (std::int64_t step = 0; step < 130; ++step) {
    const std::int64_t begin = node.time;
    worker.header.time = elsewhere.header.time = begin;
    node.sweep({{kGpu, 0.0}, {kUserTime, 0.95}});                        // in the wait
    node.sweep({{kGpu, 0.0}, {kUserTime, step % 4 == 0 ? 0.2 : 0.95}});  // 0.5 s later, in it too
    node.time = begin + 7 * kSecond / 10;
    node.sweep({{kGpu, 0.9}, {kUserTime, 0.1}});  // forward: no bottleneck
    node.time = begin + kSecond;
    node.rule.feed(worker.spans(core::Mode::train, step,
                                {{"data_wait", 0.6}, {"forward", 0.4, "phase", 0.6}}));
    node.rule.feed(worker.spans(core::Mode::train, step, {{"decode", 0.3, "op.cpu"}}));
    node.rule.feed(elsewhere.spans(core::Mode::train, step, {{"optimizer", 1.0}}));
  }
  const auto issues = node.rule.firing();
  ASSERT_FALSE(issues.empty());
  const core::ValueMap& values = issues.back().evidence.values;
  EXPECT_EQ(core::to_json(*core::find(values, "active_phases")), R"({"data_wait":100})");
  EXPECT_EQ(core::to_json(*core::find(values, "active_operators")), R"({"decode":100})");
}

TEST(CpuBottleneck, WithoutSpansNothingIsSaidOfThem) {
  GpuAndCore node("{patience: 0}");
  for (int i = 0; i < 130; ++i) node.sweep({{kGpu, 0.0}, {kUserTime, 0.95}});
  const auto issues = node.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(core::find(issues[0].evidence.values, "active_phases"), nullptr);
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
