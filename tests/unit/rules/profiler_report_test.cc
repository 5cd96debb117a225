#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rules/rules.h"
#include "tests/unit/rules/node_fixture.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using ::testing::HasSubstr;
using ::testing::Not;

const RuleSettings* named(const RulesConfig& rules, const std::string& name) {
  for (const RuleSettings& one : rules.rules) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

core::Value parameter(const RuleSettings& rule, const std::string& name) {
  for (const core::Parameter& one : rule.parameters) {
    if (one.name == name) return one.value;
  }
  return {};
}

/// Busy cores beside an idle GPU, two sweeps a second.
Node bottleneck(const std::string& with, double busy = 1.0) {
  Node node{"profiler_report", with, {gpu("0"), core_mode("0", "idle")}};
  node.sweeps(240, {{gpu("0"), 0.02}, {core_mode("0", "idle"), 1 - busy}});
  return node;
}

TEST(ProfilerReport, BringsTheElevenRulesOfTheOriginal) {
  const auto [rules, problems] = read_rules_text(" [profiler_report]");
  EXPECT_EQ(problems, "");
  EXPECT_EQ(rules.rules.size(), 12U);
  for (const char* name :
       {"batch_size", "cpu_bottleneck", "gpu_memory_increase", "io_bottleneck", "load_balancing",
        "low_gpu_utilization", "overall_system_usage", "max_initialization_time",
        "overall_framework_metrics", "step_outlier", "dataloader"}) {
    EXPECT_NE(named(rules, name), nullptr) << name;
  }
}

TEST(ProfilerReport, TakesTheirParametersInBothSpellings) {
  const auto [rules, problems] = read_rules_text(
      " [{use: ProfilerReport, preset: original, with: {CPUBottleneck_cpu_threshold: 80, "
      "cpubottleneck_gpu_threshold: '20', low_gpu_utilization_window: 7, opt_out_telemetry: "
      "true}}]");
  EXPECT_EQ(problems, "");
  const RuleSettings* cpu = named(rules, "cpu_bottleneck");
  ASSERT_NE(cpu, nullptr);
  EXPECT_EQ(cpu->preset, Preset::original);
  EXPECT_EQ(core::to_json(parameter(*cpu, "cpu_threshold")), "80");
  EXPECT_EQ(core::to_json(parameter(*cpu, "gpu_threshold")), "20");
  EXPECT_EQ(core::to_json(parameter(*named(rules, "low_gpu_utilization"), "window")), "7");
  // The same rule and the same parameters by itself: the same issues.
  const auto [alone, none] = read_rules_text(
      " [{use: cpu_bottleneck, preset: original, with: {cpu_threshold: 80, gpu_threshold: "
      "20}}]");
  EXPECT_EQ(named(alone, "cpu_bottleneck")->params_hash, cpu->params_hash);
}

TEST(ProfilerReport, RefusesWhatNoRuleHas) {
  const auto problems = [](const std::string& with) {
    return read_rules_text(" [{use: profiler_report, with: {" + with + "}}]").errors;
  };
  EXPECT_THAT(problems("Nonsense_threshold: 1"), HasSubstr("expected <RuleName>_<parameter>"));
  EXPECT_THAT(problems("threshold: 1"), HasSubstr("expected <RuleName>_<parameter>"));
  EXPECT_THAT(problems("AllZero_threshold: 1"), HasSubstr("expected <RuleName>_<parameter>"));
  EXPECT_THAT(problems("CPUBottleneck_nonsense: 1"), HasSubstr("nonsense"));
  EXPECT_THAT(problems("CPUBottleneck_cpu_threshold: 101"), HasSubstr("cpu_threshold"));
}

TEST(ProfilerReport, ARuleOfItsOwnStaysAsItIs) {
  const auto [rules, problems] =
      read_rules_text(" [profiler_report, {use: cpu_bottleneck, with: {cpu_threshold: 70}}]");
  EXPECT_EQ(problems, "");
  EXPECT_EQ(rules.rules.size(), 12U);
  EXPECT_EQ(core::to_json(parameter(*named(rules, "cpu_bottleneck"), "cpu_threshold")), "70");
  EXPECT_THAT(read_rules_text(" [cpu_bottleneck, {use: profiler_report, with: "
                              "{CPUBottleneck_cpu_threshold: 70}}]")
                  .errors,
              HasSubstr("give them to cpu_bottleneck"));
}

TEST(ProfilerReport, TellsWhatItsRulesFound) {
  Node node = bottleneck("{CPUBottleneck_patience: 10, scan_interval_us: 10000000}");
  const auto issues = node.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].rule, "cpu_bottleneck") << "its own rule's issue";
  node.end();
  EXPECT_EQ(node.rule.rule_state("profiler_report"), "IssuesFound");
  EXPECT_EQ(node.rule.rule_state("cpu_bottleneck"), "IssuesFound");
  const std::string sum = summed_up(node.rule, "profiler_report");
  EXPECT_THAT(sum, HasSubstr(R"("rules":{"cpu_bottleneck":{"status":"IssuesFound",)"))
      << "the one that was triggered stands first";
  EXPECT_THAT(sum, HasSubstr(R"("violations":1,)"));
  EXPECT_THAT(sum, HasSubstr(R"("details":{"node=node-7":{"summary":)"));
  EXPECT_THAT(sum, HasSubstr(R"("recommendation":)"));
  EXPECT_THAT(sum, HasSubstr(R"("gpus":{"node-7/0":{"utilization_percent":{"count":240,)"));
  EXPECT_THAT(sum, HasSubstr(R"("overall_system_usage":{"nodes":{"node-7":)"));
  EXPECT_THAT(sum, HasSubstr(R"("step_outlier":{"status":"NoData","triggered":0,)"));
}

TEST(ProfilerReport, IsQuietWhereItsRulesAre) {
  Node node = bottleneck("{CPUBottleneck_patience: 10, LowGPUUtilization_patience: 1000000}", 0.1);
  node.end();
  EXPECT_EQ(node.rule.rule_state("profiler_report"), "NoIssuesFound");
  EXPECT_TRUE(node.rule.firing().empty());
  EXPECT_THAT(summed_up(node.rule, "profiler_report"), Not(HasSubstr("details")));
}

TEST(ProfilerReport, TellsTheRunAndItsSteps) {
  RuleHarness rule = RuleHarness::of("profiler_report");
  FakeWorker worker;
  rule.feed(worker.start());
  worker.header.time += 10 * kSecond;
  for (int step = 0; step < 4; ++step) {
    worker.step_time = 2 * kSecond;
    rule.feed(worker.step_end(core::Mode::train, step));
  }
  worker.header.time += 5 * kSecond;
  rule.feed(worker.end());
  const std::string sum = summed_up(rule, "profiler_report");
  EXPECT_THAT(sum, HasSubstr(R"("step_seconds":{"train":{"count":4,"min":2,)"));
  EXPECT_THAT(sum, HasSubstr(R"("initialization":{"seconds":)"));
  EXPECT_THAT(sum, HasSubstr(R"("training_loop":{"seconds":8,)"));
}

TEST(ProfilerReport, IsRefreshedEachPeriod) {
  RuleHarness rule = RuleHarness::of("profiler_report", "{scan_interval_us: 10000000}");
  FakeWorker worker;
  worker.step_time = 2 * kSecond;
  rule.feed(worker.start());
  for (int step = 0; step < 11; ++step) rule.feed(worker.step_end(core::Mode::train, step));
  const auto reports = [&] {
    std::vector<SumUp> out;
    for (SumUp& one : sums_of(rule)) {
      if (one.told.find(R"("rules":{)") != std::string::npos) out.push_back(std::move(one));
    }
    return out;
  };
  ASSERT_EQ(reports().size(), 2U) << "the third period is still open";
  EXPECT_EQ(reports()[0].status, core::RuleState::in_progress);
  EXPECT_EQ(reports()[1].time - reports()[0].time, 10 * kSecond);
  EXPECT_THAT(reports()[1].told, HasSubstr(R"("step_outlier":{"status":)"));
  EXPECT_THAT(reports()[1].told, HasSubstr(R"("step_seconds":{"train":{"count":)"));
  rule.feed(worker.end());
  ASSERT_EQ(reports().size(), 3U);
  EXPECT_EQ(reports()[2].status, core::RuleState::no_issues_found);
}

TEST(ProfilerReport, WithoutAStepOrASampleThereIsNoData) {
  RuleHarness rule = RuleHarness::of("profiler_report");
  FakeWorker worker;
  rule.feed(worker.start());
  rule.feed(worker.end());
  EXPECT_EQ(rule.rule_state("profiler_report"), "NoData");
}

}  // namespace
}  // namespace tocsin::rules
