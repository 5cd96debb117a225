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
