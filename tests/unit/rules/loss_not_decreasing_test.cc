#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/rules/losses.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;

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
    EXPECT_TRUE(loss_kinds_of(
                    [](std::int64_t s) {
                      return 2.3 * std::exp(-static_cast<double>(s) / 150) + 0.2 +
                             0.15 * loss_noise(s);
                    },
                    1000, every)
                    .empty())
        << "every " << every;
  }
}

TEST(LossNotDecreasing, ALossThatNeverMovesIsStuck) {
  const auto kinds = loss_kinds_of([](std::int64_t s) { return 2.3 + 0.02 * loss_noise(s); }, 200);
  ASSERT_EQ(kinds.size(), 1U);
  EXPECT_EQ(kinds[0], "stuck");
}

TEST(LossNotDecreasing, ALossThatDoublesAtOnceIsEarly) {
  const auto kinds =
      loss_kinds_of([](std::int64_t s) { return 2.3 * std::exp(static_cast<double>(s) / 2); }, 7);
  ASSERT_FALSE(kinds.empty());
  EXPECT_EQ(kinds[0], "early");
  const auto chaos =
      loss_kinds_of([](std::int64_t s) { return s == 0 ? 2.3 : 400 + 200 * loss_noise(s); }, 14);
  ASSERT_FALSE(chaos.empty());
  EXPECT_EQ(chaos[0], "early");
}

// Values of whole sets, as boosting has them: no batch makes them waver.
TEST(LossNotDecreasing, ALossOfWholeSetsThatDoublesForTwoRoundsIsEarly) {
  const auto told = [](const std::vector<double>& rounds, bool beside, const char* with = "{}") {
    SeriesBench rule("loss_not_decreasing", with);
    std::vector<std::string> out;
    for (std::size_t i = 0; i < rounds.size(); ++i) {
      std::vector<BenchValue> values{{"train-rmse", rounds[i]}};
      if (beside) values.push_back({"valid-rmse", 1});
      rule.step(Mode::train, static_cast<std::int64_t>(i), values);
      for (const auto& one : rule.told) out.push_back(one.kind);
      if (!out.empty()) return out.front() + " at " + std::to_string(i);
    }
    return std::string();
  };
  EXPECT_EQ(told({1, 2.1, 2.1}, true), "early at 2");
  EXPECT_EQ(told({1, 2, 2, 2}, true), "") << "twice is the limit";
  EXPECT_EQ(told({1, 2.1, 1.9, 2.1, 1.9}, true), "") << "one alone may be a round of few rows";
  EXPECT_EQ(told({-1, 2.1, 2.1}, true), "early at 2") << "twice its size";
  EXPECT_EQ(told({1, 2.1, 2.1}, false), "") << "a single batch may be a lucky one";
}

// Batches of eight: the first one was a lucky one.
TEST(LossNotDecreasing, AFirstBatchThatIsALuckyOneTellsNothing) {
  const auto regression = [](std::int64_t s) {
    const double level = 0.4 + 0.6 * std::exp(-static_cast<double>(s) / 100);
    return s == 0 ? 0.45 : level * (1 + 0.5 * loss_noise(s * s));
  };
  EXPECT_TRUE(loss_kinds_of(regression, 300).empty());
}

TEST(LossNotDecreasing, ALossThatGivesBackItsGainIsLost) {
  const auto kinds = loss_kinds_of(
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

// ------------------------------------------------------------ what names and directions say

constexpr const char* kEachStep = "{num_steps: 1}";

TEST(LossNotDecreasing, JudgesBoostingRoundsThatShouldFall) {
  SeriesBench rule("loss_not_decreasing", kEachStep, "original");
  const auto round = [&](std::int64_t step) {
    return rule.step(Mode::global, step,
                     {{"train-rmse", 1, core::Role::metric},
                      {"train-auc", 1, core::Role::metric},
                      {"valid-error", 1, core::Role::metric, core::Direction::max}});
  };
  EXPECT_EQ(round(0), "train-rmse: insufficient_data");
  EXPECT_EQ(round(1), "train-rmse: hit plateau") << "the others should grow";
  EXPECT_EQ(rule.step(Mode::train, 5, {{"lr", 1, core::Role::metric}}), "")
      << "with modes a metric is no loss";
}

TEST(LossNotDecreasing, JudgesWhatAGrowingMetricLacksWhereNothingShouldFall) {
  SeriesBench rule("loss_not_decreasing", "{}", "tocsin");
  const auto round = [&](std::int64_t step, double auc) {
    return rule.step(Mode::global, step,
                     {{"train-auc", auc, core::Role::metric},
                      {"train-gain", 5, core::Role::metric, core::Direction::max},
                      {"validation-auc", auc, core::Role::metric}});
  };
  for (std::int64_t s = 0; s < 4; ++s) EXPECT_EQ(round(s, 0.5), "train-auc: insufficient_data");
  EXPECT_EQ(round(4, 0.5), "train-auc: hit stuck") << "of a whole set, five times the same";
  EXPECT_EQ(round(5, 50), "train-auc: not_applicable") << "percents";
  EXPECT_EQ(
      rule.step(Mode::global, 6,
                {{"train-auc", 0.5, core::Role::metric}, {"train-rmse", 0.5, core::Role::metric}}),
      "train-rmse: insufficient_data")
      << "beside what should fall it is left out";
}

TEST(LossNotDecreasing, WhatShouldGrowIsNoLossInLossesEither) {
  SeriesBench rule("loss_not_decreasing", kEachStep, "original");
  EXPECT_EQ(rule.step(Mode::train, 0, {{"val-auc", 1}}), "");
  EXPECT_EQ(rule.step(Mode::train, 0, {{"val-auc", 1, core::Role::loss, core::Direction::min}}),
            "val-auc: insufficient_data")
      << "what is stated decides";
}

TEST(LossNotDecreasing, TheUserMayChooseAMetric) {
  SeriesBench rule("loss_not_decreasing",
                   "{num_steps: 1, tensor_regex: [^perplexity$], use_losses_collection: false}",
                   "original");
  EXPECT_EQ(rule.step(Mode::train, 0, {{"perplexity", 9, core::Role::metric}, {"loss", 1}}),
            "perplexity: insufficient_data");
}

TEST(LossNotDecreasing, TheDefaultLooksAtTrainingOnly) {
  for (const char* name : {"val_loss", "Eval/loss", "test.loss", "validation_0_loss"}) {
    SeriesBench rule("loss_not_decreasing");
    EXPECT_EQ(rule.step(Mode::train, 0, {{name, 1}}), "") << name;
  }
  for (const char* name : {"retrieval_loss", "contest_loss", "interval_loss", "train/loss"}) {
    SeriesBench rule("loss_not_decreasing");
    EXPECT_EQ(rule.step(Mode::train, 0, {{name, 1}}), std::string(name) + ": insufficient_data");
  }
  SeriesBench rounds("loss_not_decreasing");
  EXPECT_EQ(rounds.step(Mode::global, 0,
                        {{"train-merror", 1, core::Role::metric},
                         {"validation_1-logloss", 1, core::Role::metric},
                         {"validation_0-logloss", 1, core::Role::metric}}),
            "validation_0-logloss: insufficient_data")
      << "whole samples are too coarse; the lowest of numbered sets is trained on";
  SeriesBench named("loss_not_decreasing", "{train_set: validation_1}");
  EXPECT_EQ(named.step(Mode::global, 0,
                       {{"validation_1-logloss", 1, core::Role::metric},
                        {"validation_0-logloss", 1, core::Role::metric}}),
            "validation_1-logloss: insufficient_data");
}

TEST(LossNotDecreasing, WhatABoosterIsEvaluatedOnStandsForTrainingWhereNothingElseDoes) {
  SeriesBench alone("loss_not_decreasing");
  SeriesBench beside("loss_not_decreasing");
  bool stuck = false;
  for (std::int64_t round = 0; round < 60; ++round) {
    const auto said = alone.step(Mode::train, round, {{"validation_0-mlogloss", 1.4}});
    stuck = stuck || said == "validation_0-mlogloss: hit stuck";
    const auto both = beside.step(
        Mode::train, round,
        {{"train-mlogloss", std::exp(-0.02 * static_cast<double>(round))}, {"held-mlogloss", 1.4}});
    EXPECT_EQ(both.find("held"), std::string::npos) << both;
    EXPECT_EQ(both.find("hit"), std::string::npos) << both;
  }
  EXPECT_TRUE(stuck);
}

TEST(LossNotDecreasing, AnEvaluationThatGoesUpAgainIsNoJump) {
  SeriesBench alone("loss_not_decreasing");
  for (std::int64_t round = 0; round < 120; ++round) {
    const double x = static_cast<double>(round);
    const double loss = 0.6 + 0.8 * std::exp(-x / 12) + (round > 90 ? 1e-3 * (x - 90) : 0);
    const auto said = alone.step(Mode::train, round, {{"validation_0-mlogloss", loss}});
    EXPECT_EQ(said.find("hit"), std::string::npos) << round << ": " << said;
  }
}

// ------------------------------------------------------------------------- preset original

TEST(LossNotDecreasing, StuckIsAlsoHitWithAWindowOfItsOwn) {
  SeriesBench rule("loss_not_decreasing", "{num_steps: 1, flat_evaluations: 3}", "original");
  rule.step(Mode::train, 0, {{"loss", 1}});
  EXPECT_EQ(rule.step(Mode::train, 1, {{"loss", 1}}), "loss: hit plateau");
  EXPECT_EQ(rule.step(Mode::train, 2, {{"loss", 2}}), "loss: hit increase");
  EXPECT_EQ(rule.step(Mode::train, 3, {{"loss", 1.5}}), "loss: hit stuck") << "a fall of 25 %";
  EXPECT_EQ(rule.step(Mode::train, 4, {{"loss", 1.5}}), "loss: hit plateau stuck");
  const auto& stuck = rule.told.back().finding;
  EXPECT_EQ(rule.told.back().kind, "stuck");
  EXPECT_EQ(stuck.first_step, 1) << "the reference of the first of three";
  EXPECT_EQ(stuck.points, 4U);
  EXPECT_EQ(stuck.observed.value, -50) << "the least since is 1.5, against 1";
  EXPECT_EQ(rule.step(Mode::train, 5, {{"loss", 0.9}}), "loss: ok") << "a tenth below 1 … 2";
}

TEST(LossNotDecreasing, ARowEndsAtZeroAndAtNaNAndGoesOnAtInfinity) {
  SeriesBench rule("loss_not_decreasing", "{num_steps: 1, flat_evaluations: 2}", "original");
  rule.step(Mode::train, 0, {{"loss", 1}});
  EXPECT_EQ(rule.step(Mode::train, 1, {{"loss", 1}}), "loss: hit plateau");
  EXPECT_EQ(rule.step(Mode::train, 2, {{"loss", HUGE_VAL}}), "loss: hit increase stuck");
  EXPECT_EQ(rule.step(Mode::train, 3, {{"loss", 1}}), "loss: insufficient_data")
      << "the reference is infinite";
  EXPECT_EQ(rule.step(Mode::train, 4, {{"loss", 1}}), "loss: hit plateau") << "a new row";
  EXPECT_EQ(rule.step(Mode::train, 5, {{"loss", 0}}), "loss: ok");
  EXPECT_EQ(rule.step(Mode::train, 6, {{"loss", 0}}), "loss: ok") << "the loss is zero";
  EXPECT_EQ(rule.step(Mode::train, 7, {{"loss", 1}}), "loss: hit increase");
  EXPECT_EQ(rule.step(Mode::train, 8, {{"loss", 1}}), "loss: hit plateau") << "0 broke the row";
}

TEST(LossNotDecreasing, TheLimitsAreThoseOfTheGuide) {
  const auto second = [](double loss) {
    SeriesBench rule("loss_not_decreasing",
                     "{num_steps: 1, diff_percent: 25, increase_threshold_percent: 25}",
                     "original");
    rule.step(Mode::train, 0, {{"loss", 4}});
    return rule.step(Mode::train, 1, {{"loss", loss}});
  };
  EXPECT_EQ(second(3), "loss: ok") << "25 % is enough";
  EXPECT_EQ(second(3.01), "loss: hit plateau");
  EXPECT_EQ(second(4), "loss: hit plateau");
  EXPECT_EQ(second(5), "loss: ok") << "a rise of 25 % is tolerated";
  EXPECT_EQ(second(5.01), "loss: hit increase");
  EXPECT_EQ(second(-1), "loss: ok");
}

TEST(LossNotDecreasing, APassIsThePlainMeanOfItsSteps) {
  SeriesBench rule("loss_not_decreasing", kEachStep, "original");
  const auto pass = [&](std::int64_t step, double value, double left_out = 0) {
    return rule.pass(step, {{"loss", value, core::Role::loss, {}, left_out}});
  };
  pass(0, 1);
  EXPECT_EQ(pass(1, 0.5, std::nan("")), "loss: insufficient_data") << "one of its steps is NaN";
  EXPECT_EQ(pass(2, 0.5), "loss: insufficient_data") << "and so is the reference";
  EXPECT_EQ(pass(3, 0.4, HUGE_VAL), "loss: hit increase");
}

TEST(LossNotDecreasing, FindsAReferenceFarBackAmongManySavedValues) {
  SeriesBench rule("loss_not_decreasing", "{num_steps: 1000}", "original");
  for (std::int64_t step = 0; step < 999; ++step) {
    rule.step(Mode::train, step, {{"loss", step == 700 ? 1.0 : 9.0}});
  }
  EXPECT_EQ(rule.step(Mode::train, 1700, {{"loss", 1}}), "loss: hit plateau");
  EXPECT_EQ(rule.told.back().finding.first_step, 700);
}

TEST(LossNotDecreasing, WhatTrainingBringsStillCountsAsOkWhenEvaluationHasTakenOver) {
  SeriesBench rule("loss_not_decreasing", kEachStep, "original");
  rule.step(Mode::train, 0, {{"loss", 2}});
  EXPECT_EQ(rule.step(Mode::train, 1, {{"loss", 2}}), "loss: hit plateau");
  rule.pass(0, {{"loss", 2}});
  rule.pass(1, {{"loss", 1}});
  EXPECT_EQ(rule.step(Mode::train, 2, {{"loss", 2}}), "loss: not_applicable");
  EXPECT_EQ(rule.step(Mode::train, 3, {{"loss", 1}}), "loss: ok");
}

TEST(LossNotDecreasing, AStatedModeIsObeyed) {
  SeriesBench rule("loss_not_decreasing", "{num_steps: 1, mode: TRAIN}", "original");
  EXPECT_EQ(rule.pass(0, {{"loss", 1}}), "");
  rule.step(Mode::train, 0, {{"loss", 1}});
  EXPECT_EQ(rule.step(Mode::train, 1, {{"loss", 1}}), "loss: hit plateau");
  EXPECT_NE(refusal("loss_not_decreasing", "{mode: predict}").find("EVAL, TRAIN or GLOBAL"),
            std::string::npos);
}

}  // namespace
}  // namespace tocsin::rules
