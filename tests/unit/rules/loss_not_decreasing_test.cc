#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/rule_harness.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;

void log_loss(RuleHarness& rule, FakeWorker& worker, std::int64_t step, double loss,
              Mode mode = Mode::train) {
  rule.feed(worker.scalars(mode, {{"loss", step, loss}})).feed(worker.step_end(mode, step));
}

std::vector<std::int64_t> hit_steps(RuleHarness& rule) {
  std::vector<std::int64_t> steps;
  for (const core::Issue& issue : rule.firing()) steps.push_back(*issue.step);
  return steps;
}

// Deterministic noise in −1 … 1.
double noise(std::int64_t i) {
  const auto mixed = static_cast<std::uint64_t>(i) * 0x9E3779B97F4A7C15ULL;
  return static_cast<double>(mixed >> 11) / static_cast<double>(1ULL << 52) - 1;
}

std::vector<std::string> kinds_of(const std::function<double(std::int64_t)>& loss,
                                  std::int64_t steps, std::int64_t every = 1) {
  RuleHarness rule = RuleHarness::of("loss_not_decreasing");
  FakeWorker worker;
  for (std::int64_t s = 0; s < steps; s += every) log_loss(rule, worker, s, loss(s));
  std::vector<std::string> kinds;
  for (const core::Issue& issue : rule.firing()) kinds.push_back(issue.kind);
  return kinds;
}

TEST(LossNotDecreasing, OriginalHitsAtNoChangeAgainstTheStepTenBack) {
  RuleHarness rule = RuleHarness::of("loss_not_decreasing", "{cooldown: 0s}", "original");
  FakeWorker worker;
  const std::vector<double> losses{.30, .33, .31, .30, .28};
  for (std::size_t i = 0; i < losses.size(); ++i) {
    log_loss(rule, worker, static_cast<std::int64_t>(4 * i), losses[i]);
  }
  EXPECT_EQ(hit_steps(rule), (std::vector<std::int64_t>{12}));
  EXPECT_EQ(rule.firing()[0].kind, "plateau");
  EXPECT_EQ(rule.firing()[0].evidence.window.first, 0);
}

TEST(LossNotDecreasing, OriginalSaysNothingWhenStartedLater) {
  RuleHarness rule = RuleHarness::of("loss_not_decreasing", "{start_step: 13}", "original");
  FakeWorker worker;
  const std::vector<double> losses{.30, .33, .31, .30, .28};
  for (std::size_t i = 0; i < losses.size(); ++i) {
    log_loss(rule, worker, static_cast<std::int64_t>(4 * i), losses[i]);
  }
  EXPECT_TRUE(rule.firing().empty());
}

TEST(LossNotDecreasing, OriginalWithTwentyPercentHitsAt12And24) {
  RuleHarness rule =
      RuleHarness::of("loss_not_decreasing", "{diff_percent: 20, cooldown: 0s}", "original");
  FakeWorker worker;
  const std::vector<double> losses{.30, .33, .31, .30, .28, .20, .42};
  for (std::size_t i = 0; i < losses.size(); ++i) {
    log_loss(rule, worker, static_cast<std::int64_t>(4 * i), losses[i]);
  }
  EXPECT_EQ(hit_steps(rule), (std::vector<std::int64_t>{12, 24}));
  EXPECT_EQ(rule.firing()[1].kind, "increase");
}

TEST(LossNotDecreasing, OriginalSchedulesByTheFirstStepFarEnough) {
  // Saved every 3 from 9: 21 is compared with 9, the next evaluation is 33.
  RuleHarness rule = RuleHarness::of("loss_not_decreasing", "{cooldown: 0s}", "original");
  FakeWorker worker;
  for (std::int64_t s = 9; s <= 33; s += 3) log_loss(rule, worker, s, 1.0);
  EXPECT_EQ(hit_steps(rule), (std::vector<std::int64_t>{21, 33}));
  EXPECT_EQ(rule.firing()[0].evidence.window.first, 9);
}

TEST(LossNotDecreasing, OriginalPrefersEvaluationOnceThereIsAny) {
  RuleHarness rule = RuleHarness::of("loss_not_decreasing", "{cooldown: 0s}", "original");
  FakeWorker worker;
  std::int64_t batch = 0;
  for (std::int64_t s = 0; s < 40; ++s) {
    log_loss(rule, worker, s, 1.0);
    if (s % 10 != 9) continue;
    for (int i = 0; i < 12; ++i) log_loss(rule, worker, batch++, 1.0, Mode::eval);
    ++worker.header.pass;
  }
  rule.feed(worker.end());
  std::string modes;
  for (const core::Issue& issue : rule.firing()) {
    modes += *issue.mode == Mode::eval ? 'e' : 't';
  }
  // Train hits first; from the first judged pass on only evaluation does.
  EXPECT_EQ(modes, "teee");
}

TEST(LossNotDecreasing, OriginalReportsStuckOverSeveralEvaluations) {
  RuleHarness rule = RuleHarness::of(
      "loss_not_decreasing", "{num_steps: 1, diff_percent: 0.1, flat_evaluations: 4}", "original");
  FakeWorker worker;
  for (std::int64_t s = 0; s < 8; ++s) {
    log_loss(rule, worker, s, 1.0 + 0.01 * static_cast<double>(s));  // climbs below 5 % a step
  }
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_EQ(rule.firing()[0].kind, "stuck");
  EXPECT_EQ(rule.firing()[0].step, 4);
}

TEST(LossNotDecreasing, AnInfiniteLossIsAnIncreaseAndNaNIsNoEvidence) {
  RuleHarness rule = RuleHarness::of("loss_not_decreasing", "{num_steps: 1}", "original");
  FakeWorker worker;
  log_loss(rule, worker, 0, 1.0);
  log_loss(rule, worker, 1, std::nan(""));
  EXPECT_TRUE(rule.firing().empty());
  log_loss(rule, worker, 2, 0.5);
  log_loss(rule, worker, 3, HUGE_VAL);
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_EQ(rule.firing()[0].kind, "increase");
}

TEST(LossNotDecreasing, HealthyNoisyCurvesStayQuiet) {
  for (const std::int64_t every : {1, 10}) {
    EXPECT_TRUE(kinds_of(
                    [](std::int64_t s) {
                      return 2.3 * std::exp(-static_cast<double>(s) / 150) + 0.2 + 0.15 * noise(s);
                    },
                    1000, every)
                    .empty())
        << "every " << every;
  }
}

TEST(LossNotDecreasing, ALossThatNeverMovesIsStuck) {
  const auto kinds = kinds_of([](std::int64_t s) { return 2.3 + 0.02 * noise(s); }, 200);
  ASSERT_EQ(kinds.size(), 1U);
  EXPECT_EQ(kinds[0], "stuck");
}

TEST(LossNotDecreasing, ALossThatDoublesAtOnceIsEarly) {
  const auto kinds =
      kinds_of([](std::int64_t s) { return 2.3 * std::exp(static_cast<double>(s) / 20); }, 30);
  ASSERT_FALSE(kinds.empty());
  EXPECT_EQ(kinds[0], "early");
}

TEST(LossNotDecreasing, ALossThatGivesBackItsGainIsLost) {
  const auto kinds = kinds_of(
      [](std::int64_t s) {
        return s < 400 ? 2.3 * std::exp(-static_cast<double>(s) / 100) + 0.1 : 1.9;
      },
      600);
  EXPECT_NE(std::find(kinds.begin(), kinds.end(), "lost"), kinds.end());
}

TEST(LossNotDecreasing, SeveralLossesInAStepAreNotJudged) {
  RuleHarness rule = RuleHarness::of("loss_not_decreasing");
  FakeWorker worker;
  for (std::int64_t s = 0; s < 300; ++s) {
    rule.feed(worker.scalars(Mode::train, {{"g_loss", s, 1.0}, {"d_loss", s, 1.0}}));
    rule.feed(worker.step_end(Mode::train, s));
  }
  EXPECT_TRUE(rule.firing().empty());
}

TEST(LossNotDecreasing, AveragesOverWorkers) {
  RuleHarness rule =
      RuleHarness::of("loss_not_decreasing", "{num_steps: 1, cooldown: 0s}", "original");
  FakeWorker one("digits", "exploding", 0, 2);
  FakeWorker two("digits", "exploding", 1, 2);
  for (std::int64_t s = 0; s < 2; ++s) {
    // Each alone rises or falls; their mean stays.
    log_loss(rule, one, s, s == 0 ? 1.0 : 3.0);
    log_loss(rule, two, s, s == 0 ? 3.0 : 1.0);
  }
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_EQ(rule.firing()[0].kind, "plateau");
  EXPECT_EQ(rule.firing()[0].labels.get("worker"), "");
}

}  // namespace
}  // namespace tocsin::rules
