#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/rules/node_fixture.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using ::testing::HasSubstr;
using ::testing::Not;

Node watched(const std::string& name = "node-7") {
  return {"overall_system_usage",
          "{scan_interval_us: 1000000}",
          {gpu("0"), gpu("1"), core_mode("0", "idle"), core_mode("0", "iowait"),
           "system.network.io{network.io.direction=receive}"},
          name};
}

TEST(OverallSystemUsage, TellsTheSpreadOfTheMeanOfTheDevices) {
  Node node = watched();
  for (int i = 0; i < 101; ++i) {
    const double share = i / 100.0;
    node.sweep({{gpu("0"), share}, {gpu("1"), share}});
  }
  node.end();
  EXPECT_EQ(
      summed_up(node.rule),
      R"({"nodes":{"node-7":{"gpu":{"min":0,"p50":50,"p95":95,"p99":99,"max":100,"unit":"%"}}}})");
  EXPECT_TRUE(node.rule.firing().empty());
}

TEST(OverallSystemUsage, OneIdleDeviceHalvesTheMean) {
  Node node = watched();
  node.sweeps(3, {{gpu("0"), 1.0}, {gpu("1"), 0.0}});
  node.end();
  EXPECT_THAT(summed_up(node.rule),
              HasSubstr(R"("gpu":{"min":50,"p50":50,"p95":50,"p99":50,"max":50,)"));
}

TEST(OverallSystemUsage, SaysWhatTheNumbersMean) {
  const auto told = [](double of_gpu, double idle) {
    Node node = watched();
    node.sweeps(3, {{gpu("0"), of_gpu}, {core_mode("0", "idle"), idle}});
    node.end();
    return summed_up(node.rule);
  };
  EXPECT_THAT(told(0.5, 0.5), HasSubstr("too little work"));
  EXPECT_THAT(told(0.5, 0.1), HasSubstr("hold the GPUs back"));
  EXPECT_THAT(told(0.9, 0.5), HasSubstr("well used"));
  EXPECT_THAT(told(0.5, 0.3), Not(HasSubstr("means"))) << "exactly 70 % is neither";
}

TEST(OverallSystemUsage, NetworkIsBytesASecond) {
  Node node = watched();
  for (int i = 0; i < 4; ++i) {
    node.sweep({{"system.network.io{network.io.direction=receive}", 1000.0 * i}});
  }
  node.end();
  EXPECT_THAT(summed_up(node.rule), HasSubstr(R"("network":{"min":2000,"p50":2000,)"))
      << "two a second";
}

TEST(OverallSystemUsage, LeavesOutWhatANodeDoesNotSend) {
  Node node = watched();
  node.sweeps(2, {{core_mode("0", "idle"), 0.5}});
  node.end();
  EXPECT_EQ(
      summed_up(node.rule),
      R"({"nodes":{"node-7":{"cpu":{"min":50,"p50":50,"p95":50,"p99":50,"max":50,"unit":"%"}}}})");
}

// Two sweeps a second, periods of a second.
TEST(OverallSystemUsage, TellsWhatItHasSoFarOncePerPeriod) {
  Node node = watched();
  const std::int64_t begin = node.time;
  for (const double share : {0.1, 0.3, 0.5, 0.7, 0.9}) node.sweep({{gpu("0"), share}});
  const auto sums = sums_of(node.rule);
  ASSERT_EQ(sums.size(), 2U) << "the third period is still open";
  EXPECT_EQ(sums[0].status, core::RuleState::in_progress);
  EXPECT_EQ(sums[0].time, begin + kSecond);
  EXPECT_THAT(sums[0].told, HasSubstr(R"("gpu":{"min":10,"p50":20,)"));
  EXPECT_EQ(sums[1].time, begin + 2 * kSecond);
  EXPECT_THAT(sums[1].told, HasSubstr(R"("gpu":{"min":10,"p50":40,)"));
  EXPECT_THAT(sums[1].told, HasSubstr(R"("max":70,)"));
  node.end();
  const auto all = sums_of(node.rule);
  ASSERT_EQ(all.size(), 3U) << "the end is told once";
  EXPECT_EQ(all[2].status, core::RuleState::no_issues_found);
  EXPECT_THAT(all[2].told, HasSubstr(R"("max":90,)"));
}

TEST(OverallSystemUsage, APeriodOfSeveralNodesIsToldOnce) {
  Node node = watched();
  FakeWorker other("digits", "exploding", core::kNodeAgentRank);
  other.header.worker = core::name_hash("node-8");
  node.rule.feed(other.dictionary(
      {{core::DictionaryType::node, "node-8"}, {core::DictionaryType::series, gpu("0")}}));
  for (int i = 0; i < 6; ++i) {
    node.rule.feed(other.system({{gpu("0"), node.time, 0.5}}));
    node.sweep({{gpu("0"), 0.1}});
  }
  const auto sums = sums_of(node.rule);
  ASSERT_EQ(sums.size(), 2U);
  EXPECT_THAT(sums[1].told, HasSubstr("node-7"));
  EXPECT_THAT(sums[1].told, HasSubstr("node-8"));
}

TEST(OverallSystemUsage, WithoutSamplesThereIsNoData) {
  RuleHarness rule = RuleHarness::of("overall_system_usage");
  FakeWorker worker;
  rule.feed(worker.start());
  rule.feed(worker.end());
  EXPECT_EQ(summed_up(rule), "{}");
  EXPECT_EQ(rule.rule_state(), "NoData");
}

}  // namespace
}  // namespace tocsin::rules
