// The preset `original` of loss_not_decreasing.
#include <gtest/gtest.h>

#include "tests/unit/rules/losses.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;

TEST(LossNotDecreasingOriginal, HitsAtNoChangeAgainstTheStepTenBack) {
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

TEST(LossNotDecreasingOriginal, SaysNothingWhenStartedLater) {
  RuleHarness rule = RuleHarness::of("loss_not_decreasing", "{start_step: 13}", "original");
  FakeWorker worker;
  const std::vector<double> losses{.30, .33, .31, .30, .28};
  for (std::size_t i = 0; i < losses.size(); ++i) {
    log_loss(rule, worker, static_cast<std::int64_t>(4 * i), losses[i]);
  }
  EXPECT_TRUE(rule.firing().empty());
}

TEST(LossNotDecreasingOriginal, WithTwentyPercentHitsAt12And24) {
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

TEST(LossNotDecreasingOriginal, SchedulesByTheFirstStepFarEnough) {
  // Saved every 3 from 9: 21 is compared with 9, the next evaluation is 33.
  RuleHarness rule = RuleHarness::of("loss_not_decreasing", "{cooldown: 0s}", "original");
  FakeWorker worker;
  for (std::int64_t s = 9; s <= 33; s += 3) log_loss(rule, worker, s, 1.0);
  EXPECT_EQ(hit_steps(rule), (std::vector<std::int64_t>{21, 33}));
  EXPECT_EQ(rule.firing()[0].evidence.window.first, 9);
}

TEST(LossNotDecreasingOriginal, PrefersEvaluationOnceThereIsAny) {
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

TEST(LossNotDecreasingOriginal, ReportsStuckOverSeveralEvaluations) {
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

}  // namespace
}  // namespace tocsin::rules
