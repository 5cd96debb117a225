#include <gtest/gtest.h>

#include "tests/unit/rules/timed_fixture.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;

constexpr double kMicro = 1e-6;

/// One worker that profiles its steps.
struct Profiled {
  RuleHarness rule;
  FakeWorker worker;
  std::int64_t step = 0;

  explicit Profiled(const std::string& with, const std::string& preset = "tocsin")
      : rule(RuleHarness::of("operator_latency", with, preset)) {
    std::vector<Entry> names;
    for (const char* name : {"conv", "add", "matmul"}) {
      names.push_back({core::DictionaryType::span_name, name});
    }
    for (const char* track : {"op.cpu", "op.gpu/0", "op.gpu/1", "phase"}) {
      names.push_back({core::DictionaryType::track, track});
    }
    rule.feed(worker.start()).feed(worker.dictionary(names));
  }
  void profile(const std::vector<Spent>& calls, Mode mode = Mode::train) {
    rule.feed(worker.spans(mode, step++, calls));
  }
  void profile(int count, const std::vector<Spent>& calls) {
    for (int i = 0; i < count; ++i) profile(calls);
  }
  void end() { rule.feed(worker.end()); }
};

Spent cpu(const std::string& name, double microseconds) {
  return {name, microseconds * kMicro, "op.cpu"};
}
Spent gpu_spent(const std::string& name, double microseconds, const std::string& device = "0") {
  return {name, microseconds * kMicro, "op.gpu/" + device};
}

TEST(OperatorLatency, MoreThanHalfOfTheDevicesTimeIsDominant) {
  Profiled run("{min_calls: 1, window: 1}");
  run.profile({cpu("conv", 50), cpu("add", 50)});
  run.profile({cpu("conv", 51), cpu("add", 49)});
  run.profile({cpu("conv", 50), cpu("add", 50)});
  const auto issues = run.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].kind, "dominant");
  EXPECT_EQ(issues[0].labels.get("metric"), "conv");
  EXPECT_EQ(issues[0].labels.get("device"), "cpu");
  EXPECT_EQ(issues[0].labels.get("worker"), "worker_0");
  EXPECT_EQ(issues[0].labels.get("mode"), "train");
  EXPECT_EQ(issues[0].step, 1);
  EXPECT_NEAR(issues[0].evidence.observed.value, 51, 1e-9);
  EXPECT_EQ(issues[0].severity, core::Severity::info);
}

// conv takes 100 us, and has matmul done for 70 of them.
TEST(OperatorLatency, ACallCountsWithoutThoseWithinIt) {
  Profiled run("{min_calls: 1, window: 1}");
  run.profile({{"conv", 100 * kMicro, "op.cpu"}, {"matmul", 70 * kMicro, "op.cpu", 20 * kMicro}});
  run.end();
  const auto issues = run.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].labels.get("metric"), "matmul");
  EXPECT_NEAR(issues[0].evidence.observed.value, 70, 1e-9);
  EXPECT_EQ(value_of(issues[0], "self_time") != nullptr, true);
}

// A step of which the frames come one by one, and in any order.
TEST(OperatorLatency, AlsoWhereTheCallComesBehindThoseThatItMade) {
  Profiled run("{min_calls: 1, window: 1}");
  run.rule.feed(run.worker.spans(Mode::train, 0, {{"matmul", 70 * kMicro, "op.cpu", 20 * kMicro}}));
  run.rule.feed(run.worker.spans(Mode::train, 0, {{"conv", 100 * kMicro, "op.cpu"}}));
  run.end();
  ASSERT_EQ(run.rule.firing().size(), 1U);
  EXPECT_EQ(run.rule.firing()[0].labels.get("metric"), "matmul");
}

TEST(OperatorLatency, AStepIsJudgedWhenTheNextOneBeginsOrTheRunEnds) {
  Profiled run("{min_calls: 1, window: 1}");
  run.profile({cpu("conv", 90), cpu("add", 10)});
  EXPECT_TRUE(run.rule.firing().empty());
  run.rule.feed(run.worker.spans(Mode::train, 0, {cpu("add", 5)}));  // still the same step
  EXPECT_TRUE(run.rule.firing().empty());
  run.end();
  ASSERT_EQ(run.rule.firing().size(), 1U);
  EXPECT_NEAR(run.rule.firing()[0].evidence.observed.value, 100.0 * 90 / 105, 1e-9);
}

TEST(OperatorLatency, CallsOfAJudgedStepAreLeftOutAndCounted) {
  Profiled run("{min_calls: 1, window: 1}");
  run.profile(2, {cpu("conv", 50), cpu("add", 50)});
  EXPECT_EQ(run.rule.engine().stats().late_rows, 0U);
  run.rule.feed(run.worker.spans(Mode::train, 0, {cpu("add", 500), cpu("add", 500)}));
  EXPECT_EQ(run.rule.engine().stats().late_rows, 2U);
  run.end();
  EXPECT_TRUE(run.rule.firing().empty());
}

TEST(OperatorLatency, SharesAreThoseOfADevice) {
  Profiled run("{min_calls: 1}");
  run.profile({cpu("conv", 50), cpu("add", 50), gpu_spent("conv", 900), gpu_spent("add", 900),
               gpu_spent("conv", 1, "1"), gpu_spent("matmul", 3, "1")});
  run.end();
  const auto issues = run.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].labels.get("device"), "gpu/1");
  EXPECT_EQ(issues[0].labels.get("metric"), "matmul");
}

TEST(OperatorLatency, CallsAreNeededAndCountOverTheWindow) {
  Profiled few("{min_calls: 3, window: 2}");
  few.profile(5, {cpu("conv", 10)});
  few.end();
  EXPECT_TRUE(few.rule.firing().empty());
  EXPECT_EQ(few.rule.rule_state(), "NoData");
  Profiled enough("{min_calls: 3, window: 3}");
  enough.profile(3, {cpu("conv", 10)});
  enough.end();
  ASSERT_EQ(enough.rule.firing().size(), 1U);
  EXPECT_EQ(enough.rule.firing()[0].step, 2);
  EXPECT_EQ(number_in(enough.rule.firing()[0], "calls"), 3);
}

TEST(OperatorLatency, SlowNeedsALimitAndExactlyTheLimitIsNotSlow) {
  Profiled none("{min_calls: 1, window: 1, max_share_percent: 100}");
  none.profile(3, {cpu("conv", 1e6)});
  none.end();
  EXPECT_TRUE(none.rule.firing().empty());
  Profiled limit("{min_calls: 1, window: 1, max_share_percent: 100, max_p95_us: 70}");
  limit.profile({cpu("conv", 70)});
  limit.profile({cpu("conv", 71)});
  limit.end();
  ASSERT_EQ(limit.rule.firing().size(), 1U);
  EXPECT_EQ(limit.rule.firing()[0].kind, "slow");
  EXPECT_EQ(limit.rule.firing()[0].step, 1);
}

TEST(OperatorLatency, RegressedIsAgainstTheFirstFullWindow) {
  Profiled run("{min_calls: 2, window: 2, max_share_percent: 100}");
  run.profile(2, {cpu("conv", 10)});
  run.profile(2, {cpu("conv", 30)});
  run.profile(2, {cpu("conv", 31)});
  run.end();
  const auto issues = run.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].kind, "regressed");
  EXPECT_EQ(issues[0].step, 4) << "the median of 30 and 31";
  EXPECT_EQ(number_in(issues[0], "baseline_p50_us"), 10);
}

TEST(OperatorLatency, AnOperatorThatTheFirstWindowHardlyKnewHasNothingToRegressFrom) {
  Profiled run("{min_calls: 2, window: 2, max_share_percent: 100}");
  run.profile({cpu("conv", 10), cpu("add", 1)});
  run.profile({cpu("conv", 10)});
  run.profile(3, {cpu("conv", 10), cpu("add", 9)});
  run.end();
  EXPECT_TRUE(run.rule.firing().empty());
  EXPECT_EQ(run.rule.rule_state(), "NoIssuesFound");
}

TEST(OperatorLatency, ADeviceAndAPatternChooseWhatIsJudgedNotWhatTheShareIsOf) {
  Profiled run("{min_calls: 1, device: gpu, op_regex: [conv]}");
  run.profile({cpu("conv", 99), cpu("add", 1), gpu_spent("conv", 1), gpu_spent("add", 99)});
  run.end();
  EXPECT_TRUE(run.rule.firing().empty());
  EXPECT_EQ(run.rule.rule_state(), "NoIssuesFound");
}

TEST(OperatorLatency, AStepWithoutOperatorsOfTheDeviceIsProfiledToo) {
  Profiled run("{min_calls: 2, window: 2, device: gpu}");
  for (int i = 0; i < 4; ++i) {
    run.profile({gpu_spent("conv", 9), gpu_spent("add", 1)});
    run.profile({cpu("conv", 1)});
  }
  run.end();
  EXPECT_TRUE(run.rule.firing().empty()) << "one call in two steps";
  EXPECT_EQ(run.rule.rule_state(), "NoData");
}

TEST(OperatorLatency, PhasesAndInstantsAreNoOperators) {
  Profiled run("{min_calls: 1}");
  run.profile({{"conv", 1.0, "phase"}});
  run.rule.feed(run.worker.spans(Mode::train, 1, {{"conv", -1e-9, "op.cpu"}}));
  run.end();
  EXPECT_EQ(run.rule.rule_state(), "NoData");
}

TEST(OperatorLatency, ModesAreJudgedByThemselvesAndAnotherModeEndsAStep) {
  Profiled run("{min_calls: 1, window: 1}");
  run.profile({cpu("conv", 90), cpu("add", 10)});
  run.step = 0;
  run.profile({cpu("conv", 10), cpu("add", 90)}, Mode::eval);
  ASSERT_EQ(run.rule.firing().size(), 1U) << "the train step is over";
  run.end();
  ASSERT_EQ(run.rule.firing().size(), 2U);
  EXPECT_EQ(run.rule.firing()[1].labels.get("mode"), "eval");
  EXPECT_EQ(run.rule.firing()[1].labels.get("metric"), "add");
  EXPECT_EQ(run.rule.ids().size(), 4U);
}

TEST(OperatorLatency, TheOldNameIsAnAlias) {
  for (const char* name : {"tf_operator_time", "TfOperatorTime", "OperatorLatency"}) {
    ASSERT_NE(find_rule(name), nullptr) << name;
    EXPECT_EQ(find_rule(name)->name, "operator_latency");
  }
}

TEST(OperatorLatency, RefusesWhatCanNeverHold) {
  const auto errors = [](const std::string& with) {
    return read_rules_text("  - {use: operator_latency, with: {" + with + "}}").errors;
  };
  EXPECT_NE(errors("max_share_percent: 0"), "");
  EXPECT_NE(errors("max_p95_us: 0"), "");
  EXPECT_NE(errors("slowdown_factor: 1"), "");
  EXPECT_NE(errors("op_regex: ['(']"), "");
  EXPECT_EQ(errors("max_share_percent: 100, max_p95_us: 0.5, device: gpu"), "");
}

}  // namespace
}  // namespace tocsin::rules
