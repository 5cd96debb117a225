#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/rules/losses.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;

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
      kinds_of([](std::int64_t s) { return 2.3 * std::exp(static_cast<double>(s) / 2); }, 7);
  ASSERT_FALSE(kinds.empty());
  EXPECT_EQ(kinds[0], "early");
  const auto chaos =
      kinds_of([](std::int64_t s) { return s == 0 ? 2.3 : 400 + 200 * noise(s); }, 14);
  ASSERT_FALSE(chaos.empty());
  EXPECT_EQ(chaos[0], "early");
}

// Batches of eight: the first one was a lucky one.
TEST(LossNotDecreasing, AFirstBatchThatIsALuckyOneTellsNothing) {
  const auto regression = [](std::int64_t s) {
    const double level = 0.4 + 0.6 * std::exp(-static_cast<double>(s) / 100);
    return s == 0 ? 0.45 : level * (1 + 0.5 * noise(s * s));
  };
  EXPECT_TRUE(kinds_of(regression, 300).empty());
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
  for (const char* name : {"val_loss", "Eval/loss", "test.loss", "validation_0-loss"}) {
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

// --------------------------------------------------------------------------- preset tocsin

TEST(LossNotDecreasing, FortyRoundsAreEnoughToSeeThatNothingFalls) {
  SeriesBench rule("loss_not_decreasing");
  std::int64_t first = -1;
  for (std::int64_t i = 0; i < 40; ++i) {
    const double wobble = 0.002 * noise(i);
    rule.step(Mode::global, i, {{"train-logloss", 0.693 + wobble, core::Role::metric}});
    if (first < 0 && !rule.told.empty()) first = i;
  }
  ASSERT_FALSE(rule.told.empty());
  EXPECT_EQ(rule.told[0].kind, "stuck");
  EXPECT_GE(first, 19) << "not before 2 · num_steps: a warm-up looks like that";
  EXPECT_LE(first, 24);
  SeriesBench still("loss_not_decreasing");
  for (std::int64_t i = 0; i < 9; ++i) still.step(Mode::train, i, {{"loss", 2.3}});
  EXPECT_EQ(still.told.size(), 1U) << "what does not move at all is no warm-up";
}

TEST(LossNotDecreasing, AWarmUpIsNoPlateau) {
  const auto warm_up = [](std::int64_t s) {
    return s < 15 ? 10.8 - 0.002 * static_cast<double>(s * s) + 0.02 * noise(s)
                  : 4 + 6.4 * std::exp(-static_cast<double>(s - 15) / 60) + 0.05 * noise(s);
  };
  EXPECT_TRUE(kinds_of(warm_up, 300).empty());
}

TEST(LossNotDecreasing, OneLogPerEpochIsJudged) {
  SeriesBench rule("loss_not_decreasing");
  for (std::int64_t epoch = 0; epoch < 9; ++epoch) {
    rule.step(Mode::train, 100 * epoch, {{"loss", 2.3}});
  }
  ASSERT_FALSE(rule.told.empty()) << "at the ninth of them";
  EXPECT_EQ(rule.told[0].kind, "stuck");
}

TEST(LossNotDecreasing, PointsGrowApartWithWhatTheJobHasBrought) {
  SeriesBench rule("loss_not_decreasing");
  std::vector<std::int64_t> judged;
  for (std::int64_t i = 0; i < 130; ++i) {
    if (!rule.step(Mode::train, i, {{"loss", 100 / (1.0 + static_cast<double>(i))}}).empty()) {
      judged.push_back(i);
    }
  }
  // One value per point up to 16 values, then 2, 3 … and from 80 on 10 steps.
  EXPECT_EQ(judged[15], 15);
  EXPECT_EQ(judged[16], 17);
  EXPECT_EQ(judged[judged.size() - 1] - judged[judged.size() - 2], 10);
  EXPECT_TRUE(rule.told.empty());
}

// A fine-tune: 6 % gained in 300 steps under noise of 10 % is no plateau, and what noise gives it
// takes back.
TEST(LossNotDecreasing, SmallNoisyGainsAreNeitherStuckNorLost) {
  const auto fine_tune = [](std::int64_t s) {
    return 0.5 * (1 - 0.06 * static_cast<double>(s) / 300) + 0.05 * noise(s);
  };
  EXPECT_TRUE(kinds_of(fine_tune, 300).empty());
  // Early noise that goes down with the loss of a regression.
  const auto regression = [](std::int64_t s) {
    const double fall = std::exp(-static_cast<double>(s) / 40);
    return 0.3 + fall + (0.05 + 0.5 * fall) * noise(s);
  };
  EXPECT_TRUE(kinds_of(regression, 400).empty());
}

TEST(LossNotDecreasing, WithoutNoiseTheConditionsAreTheBareOnes) {
  SeriesBench rule("loss_not_decreasing", "{num_steps: 1, noise_factor: 0}");
  for (std::int64_t i = 0; i < 4; ++i) rule.step(Mode::train, i, {{"loss", 1}});
  EXPECT_EQ(rule.step(Mode::train, 4, {{"loss", 2.01}}), "loss: hit early");
  SeriesBench careful("loss_not_decreasing");
  for (std::int64_t i = 0; i < 4; ++i) careful.step(Mode::train, i, {{"loss", 1}});
  for (std::int64_t i = 4; i < 9; ++i) {
    EXPECT_EQ(careful.step(Mode::train, i, {{"loss", 3.5}}).find("early"), std::string::npos) << i;
  }
  std::int64_t at = 9;
  while (careful.step(Mode::train, at, {{"loss", 3.5}}).find("early") == std::string::npos) ++at;
  EXPECT_LE(at, 12) << "five of them are known, and few differences tell how much is noise";
}

TEST(LossNotDecreasing, FivePointsFarAboveTheBestAreARise) {
  SeriesBench rule("loss_not_decreasing", kEachStep);
  for (std::int64_t i = 0; i < 10; ++i) rule.step(Mode::train, i, {{"loss", 1}});
  // best = first = 1: the limit is 1.5, and the median of 5 passes it with the third high value.
  EXPECT_EQ(rule.told.back().kind, "stuck");
  for (std::int64_t i = 10; i < 14; ++i) {
    EXPECT_EQ(rule.step(Mode::train, i, {{"loss", 1.51}}).find("rise"), std::string::npos) << i;
  }
  rule.step(Mode::train, 14, {{"loss", 1.51}});
  EXPECT_EQ(rule.told.back().kind, "rise") << "the third median above 1.5";
}

// A fine-tune: losses near 0, of which a few are large. Early medians of single ones lie below the mean.
TEST(LossNotDecreasing, SkewedLossesThatStayAreNoRise) {
  const auto skewed = [](std::int64_t s) {
    const double x = noise(s);
    return x > 0.6 ? 0.4 * x : 0.02 + 0.01 * x;
  };
  EXPECT_TRUE(kinds_of(skewed, 400).empty());
}

// Networks that start slowly: hardly any gain in 30 steps, then all of it.
TEST(LossNotDecreasing, ASlowStartIsNoPlateau) {
  const auto slow = [](std::int64_t s) {
    const double x = static_cast<double>(s);
    return 0.3 + 2 / (1 + std::exp((x - 80) / 15)) + 0.03 * noise(s);
  };
  EXPECT_TRUE(kinds_of(slow, 300).empty());
}

TEST(LossNotDecreasing, ASetsLossThatIsOneNumberFromTheStartIsStuckAtTheFifth) {
  const auto told_at = [](double change, bool validation) {
    SeriesBench rule("loss_not_decreasing");
    for (std::int64_t i = 0; i < 8; ++i) {
      std::vector<BenchValue> values{
          {"train-logloss", 0.693147 - change * static_cast<double>(i), core::Role::loss}};
      if (validation) values.push_back({"valid-logloss", 0.7, core::Role::loss});
      rule.step(core::Mode::train, i, values);
      if (!rule.told.empty()) return i;
    }
    return std::int64_t{-1};
  };
  EXPECT_EQ(told_at(0, true), 4);
  EXPECT_EQ(told_at(1e-7, true), 4) << "less than a millionth of it over four rounds";
  EXPECT_EQ(told_at(1e-5, true), -1) << "it falls slowly";
  EXPECT_EQ(told_at(0, false), -1) << "losses of batches may be rounded";
}

TEST(LossNotDecreasing, APlateauIsNoneWhileTheLearningRateRises) {
  const auto told_at = [](std::int64_t warm_up) {
    SeriesBench rule("loss_not_decreasing");
    for (std::int64_t i = 0; i < 120; ++i) {
      const auto rate = static_cast<double>(std::min(i, warm_up)) + 1;
      const double noise = i % 2 == 0 ? 0.001 : -0.001;
      rule.step(
          core::Mode::train, i,
          {{"loss", 2.3 + noise, core::Role::loss}, {"learning_rate", rate, core::Role::metric}});
      if (!rule.told.empty()) return i;
    }
    return std::int64_t{-1};
  };
  const std::int64_t constant = told_at(0);
  EXPECT_GE(constant, 10);
  EXPECT_LT(constant, 60);
  EXPECT_GE(told_at(80), 90) << "ten steps beyond the largest rate";
}

TEST(LossNotDecreasing, SeveralMetricsOfASetAreNoAdversaries) {
  const auto told = [](bool validation) {
    SeriesBench rule("loss_not_decreasing", "{num_steps: 1}");
    for (std::int64_t i = 0; i < 12; ++i) {
      std::vector<BenchValue> values{{"training-l1", 1, core::Role::loss},
                                     {"training-l2", 1, core::Role::loss}};
      if (validation) values.push_back({"valid-l2", 1.1, core::Role::loss});
      rule.step(core::Mode::train, i, values);
    }
    return rule.told.size();
  };
  EXPECT_EQ(told(false), 0U);
  EXPECT_GE(told(true), 2U);
}

}  // namespace
}  // namespace tocsin::rules
