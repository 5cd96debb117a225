#include <gtest/gtest.h>

#include "tests/unit/rules/timed_fixture.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;

constexpr std::int64_t kMinutes = 60 * kSecond;

// Nothing else than the rule speaks here: a run that is silent is not lost.
RuleHarness initialization(const std::string& with) {
  EngineOptions options;
  options.config.lost_after = std::chrono::hours(100);
  return RuleHarness("  - {use: max_initialization_time, with: " + with + "}", options);
}

TEST(MaxInitializationTime, FiresOnceWhenTheThresholdIsPassed) {
  RuleHarness rule = initialization("{threshold: 2}");
  FakeWorker worker;
  rule.feed(worker.start());
  rule.tick(kStart + 2 * kMinutes);
  EXPECT_TRUE(rule.firing().empty()) << "exactly the threshold";
  rule.tick(kStart + 2 * kMinutes + 1);
  rule.tick(kStart + 30 * kMinutes);
  const auto issues = rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].severity, core::Severity::warning);
  EXPECT_EQ(issues[0].evidence.observed.name, "minutes");
  EXPECT_EQ(issues[0].evidence.threshold->value, 2);
  EXPECT_EQ(issues[0].evidence.window.clock, "time");
  EXPECT_FALSE(issues[0].mode.has_value()) << "there was no step";
  EXPECT_NE(value_of(issues[0], "last_message"), nullptr);
}

TEST(MaxInitializationTime, TheFirstStepResolvesItForGood) {
  RuleHarness rule = initialization("{threshold: 1}");
  FakeWorker worker;
  rule.feed(worker.start());
  rule.tick(kStart + 2 * kMinutes);
  worker.header.time = kStart + 3 * kMinutes;
  rule.feed(worker.step_end(Mode::train, 0));
  ASSERT_EQ(rule.resolved().size(), 1U);
  EXPECT_EQ(rule.resolved()[0].resolution, core::Resolution::recovered);
  rule.tick(kStart + 60 * kMinutes);
  EXPECT_EQ(rule.firing().size(), 1U) << "what comes later is no initialization";
}

TEST(MaxInitializationTime, AnyStepOfAnyModeAndTensorsOfItAreABeginning) {
  for (const int which : {0, 1, 2}) {
    RuleHarness rule = initialization("{threshold: 1}");
    FakeWorker worker;
    rule.feed(worker.start());
    if (which == 0) rule.feed(worker.step_end(Mode::eval, 0));
    if (which == 1) rule.feed(worker.tensors(Mode::train, 0, {{"g", {1.0}}}));
    if (which == 2) rule.feed(worker.scalars(Mode::predict, {{"loss", 0, 1.0}}));
    rule.tick(kStart + 10 * kMinutes);
    EXPECT_TRUE(rule.firing().empty()) << which;
    rule.feed(worker.end());
    EXPECT_EQ(rule.rule_state(), "NoIssuesFound");
  }
}

TEST(MaxInitializationTime, HeartbeatsAndSystemSamplesAreNoStep) {
  RuleHarness rule = initialization("{threshold: 1}");
  FakeWorker worker;
  FakeWorker agent("digits", "exploding", core::kNodeAgentRank);
  rule.feed(worker.start());
  worker.header.time = kStart + 50 * kSecond;
  rule.feed(worker.heartbeat());
  rule.feed(agent.system({{"system.memory.utilization", worker.header.time, 0.5}}));
  rule.tick(kStart + 61 * kSecond);
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_EQ(*core::as<std::string>(value_of(rule.firing()[0], "last_message")),
            core::to_rfc3339(core::wall_time(kStart + 50 * kSecond)));
}

TEST(MaxInitializationTime, ThresholdZeroFiresAsSoonAsTimePasses) {
  RuleHarness rule = initialization("{threshold: 0}");
  FakeWorker worker;
  rule.feed(worker.start());
  rule.tick(kStart);
  EXPECT_TRUE(rule.firing().empty());
  rule.tick(kStart + 1);
  EXPECT_EQ(rule.firing().size(), 1U);
}

TEST(MaxInitializationTime, LagProvesNothing) {
  RuleHarness rule = initialization("{threshold: 1}");
  FakeWorker worker;
  rule.feed(worker.start());
  rule.tick(kStart + 60 * kMinutes, /*zero_lag=*/false);
  EXPECT_TRUE(rule.firing().empty());
}

TEST(MaxInitializationTime, EveryAttemptHasItsOwnStart) {
  RuleHarness rule = initialization("{threshold: 1}");
  FakeWorker worker;
  rule.feed(worker.start()).feed(worker.step_end(Mode::train, 0));
  worker.header.time = kStart + 5 * kMinutes;
  worker.header.incarnation += 1000;
  worker.header.sequence = 0;
  worker.header.attempt = 2;
  rule.feed(worker.start());
  rule.tick(kStart + 6 * kMinutes);
  EXPECT_TRUE(rule.firing().empty());
  rule.tick(kStart + 6 * kMinutes + 1);
  EXPECT_EQ(rule.firing().size(), 1U);
}

TEST(MaxInitializationTime, InReplaysTheRecordsAreTheClock) {
  EngineOptions options;
  options.record_time = true;
  RuleHarness rule("  - {use: max_initialization_time, with: {threshold: 1}}", options);
  FakeWorker worker;
  rule.feed(worker.start());
  worker.header.time = kStart + 60 * kSecond;
  rule.feed(worker.heartbeat());
  EXPECT_TRUE(rule.firing().empty());
  worker.header.time = kStart + 70 * kSecond;
  rule.feed(worker.step_end(Mode::train, 0));
  EXPECT_EQ(rule.firing().size(), 1U) << "it came too late";
  EXPECT_EQ(rule.resolved().size(), 1U);
}

TEST(MaxInitializationTime, TheTickThatFoundItIsInTheLog) {
  RuleHarness rule = initialization("{threshold: 1}");
  FakeWorker worker;
  rule.feed(worker.start());
  rule.tick(kStart + kMinutes);
  const std::size_t before = rule.log().size();
  rule.tick(kStart + 2 * kMinutes);
  EXPECT_EQ(rule.log().size(), before + 1);
  rule.tick(kStart + 3 * kMinutes);
  EXPECT_EQ(rule.log().size(), before + 1);
}

}  // namespace
}  // namespace tocsin::rules
