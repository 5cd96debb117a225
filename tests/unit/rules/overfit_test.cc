#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/rules/rule_bench.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;

/// A training that evaluates after every `train` losses.
struct Training {
  RuleHarness rule;
  FakeWorker worker;
  std::int64_t step = 0;
  std::int64_t batch = 0;

  explicit Training(const std::string& with = "{}", const std::string& preset = "tocsin")
      : rule(RuleHarness::of("overfit", with, preset)) {
    rule.feed(worker.dictionary({{core::DictionaryType::scalar, "loss", core::Role::loss},
                                 {core::DictionaryType::scalar, "val_loss", core::Role::loss}}));
  }
  void train(std::vector<double> losses, const std::string& name = "loss") {
    for (const double loss : losses) {
      rule.feed(worker.scalars(Mode::train, {{name, step, loss}}));
      rule.feed(worker.step_end(Mode::train, step++));
    }
  }
  void evaluate(std::vector<double> losses, const std::string& name = "loss") {
    for (const double loss : losses) {
      rule.feed(worker.scalars(Mode::eval, {{name, batch, loss}}));
      rule.feed(worker.step_end(Mode::eval, batch++));
    }
    ++worker.header.pass;
  }
  std::vector<core::Issue> finish() {
    rule.feed(worker.end());
    return rule.firing();
  }
};

TEST(Overfit, OriginalComparesThePassWithTrainingSinceTheLastOne) {
  Training job("{}", "original");
  job.train({1.0, 0.8});      // mean 0.9
  job.evaluate({0.9, 1.08});  // mean 0.99: exactly 10 % above
  job.train({0.5});
  job.evaluate({0.5, 0.59});  // mean 0.545: 9 % above
  job.train({0.5});
  job.evaluate({0.6});
  const auto issues = job.finish();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].mode, Mode::eval);
  EXPECT_EQ(issues[0].step, 4) << "the last batch of the third pass";
  EXPECT_NEAR(issues[0].evidence.observed.value, 0.2, 1e-12);
}

TEST(Overfit, PassesAreJudgedWhenTrainingGoesOn) {
  Training job("{}", "original");
  job.train({0.5});
  job.evaluate({0.9});
  EXPECT_TRUE(job.rule.firing().empty()) << "others may still evaluate";
  job.train({0.5});
  EXPECT_EQ(job.rule.firing().size(), 1U);
}

TEST(Overfit, OriginalCountsStrikesBeforeStartStepButWaitsForIt) {
  Training job("{start_step: 4, patience: 3}", "original");
  for (int pass = 0; pass < 6; ++pass) {
    job.train({0.5});
    job.evaluate({0.9});
  }
  const auto issues = job.finish();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].step, 4) << "fifth pass: after training step 4, with strikes from before";
}

TEST(Overfit, OriginalPairsKerasNamesInOneStep) {
  Training job("{}", "original");
  job.train({0.5});
  job.train({0.4}, "val_loss");
  EXPECT_TRUE(job.rule.firing().empty());
  job.train({0.5});
  job.train({0.9}, "val_loss");
  ASSERT_EQ(job.finish().size(), 1U);
}

TEST(Overfit, TheDefaultComparesWithTheBestPass) {
  Training job;
  const std::vector<double> passes{1.0, 0.8, 0.6, 0.61, 0.62, 0.63, 0.64};
  for (const double loss : passes) {
    job.train({0.1});  // far below: no matter
    job.evaluate({loss});
  }
  const auto issues = job.finish();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].step, 6) << "third pass in a row more than 2 % above 0.6";
  EXPECT_EQ(issues[0].labels.get("metric"), "loss");
  EXPECT_EQ(issues[0].labels.get("mode"), "");
}

TEST(Overfit, NoisyEvaluationThatKeepsImprovingIsHealthy) {
  Training job;
  for (int pass = 0; pass < 50; ++pass) {
    job.train({0.1});
    job.evaluate({2.0 / (pass + 1) + (pass % 2 == 0 ? 0.05 : 0.0)});
  }
  EXPECT_TRUE(job.finish().empty());
}

// A hundred samples: what the first few evaluations differ by is known from the fourth one on.
TEST(Overfit, AFirstEvaluationThatIsALuckyOneTellsNothing) {
  Training job;
  for (const double loss : {0.149, 0.2457, 0.2368, 0.1653, 0.1409, 0.15, 0.137}) {
    job.train({0.1});
    job.evaluate({loss});
  }
  EXPECT_TRUE(job.finish().empty());
}

TEST(Overfit, WithoutEvaluationThereIsNoData) {
  Training job;
  job.train({0.5, 0.4});
  EXPECT_TRUE(job.finish().empty());
  EXPECT_EQ(job.rule.rule_state(), "NoData");
}

TEST(Overfit, NonFiniteBatchesAreLeftOut) {
  Training job("{}", "original");
  job.train({0.5, std::nan("")});
  job.evaluate({0.9, HUGE_VAL});
  EXPECT_EQ(job.finish().size(), 1U);
}

// ------------------------------------------------------------ what names and directions say

std::vector<BenchValue> round_of(std::vector<std::pair<std::string, double>> values) {
  std::vector<BenchValue> out;
  out.reserve(values.size());
  for (auto& [name, value] : values) out.push_back({name, value, core::Role::metric});
  return out;
}

TEST(Overfit, JudgesBoostingRoundsWithoutModes) {
  SeriesBench rule("overfit", "{}", "original");
  EXPECT_EQ(rule.step(Mode::global, 0, round_of({{"train-rmse", 10}, {"validation-rmse", 11}})),
            "validation-rmse: ok")
      << "10 % is the limit";
  EXPECT_EQ(rule.step(Mode::global, 1, round_of({{"train-rmse", 10}, {"validation-rmse", 11.1}})),
            "validation-rmse: hit");
  EXPECT_EQ(rule.step(Mode::global, 2, round_of({{"validation-rmse", 9}})), "") << "no pair";
}

TEST(Overfit, EachSetIsASeriesOfItsOwn) {
  SeriesBench rule("overfit", "{patience: 2, noise_factor: 0}");
  const auto round = [&](std::int64_t step, double valid, double eval_0, double eval_1) {
    return rule.step(Mode::global, step,
                     round_of({{"valid-logloss", valid},
                               {"eval_0-logloss", eval_0},
                               {"eval_1-logloss", eval_1},
                               {"train-logloss", 0.01}}));
  };
  round(0, 1, 0.5, 0.3);
  round(1, 1, 0.6, 0.3);
  round(2, 1, 0.6, 0.3);
  ASSERT_EQ(rule.told.size(), 1U);
  EXPECT_EQ(rule.told[0].metric, "eval_0-logloss");
}

TEST(Overfit, GrowingMetricsAreJudgedByTheirFallOrNotAtAll) {
  SeriesBench ours("overfit", "{patience: 2, noise_factor: 0}");
  SeriesBench original("overfit", "{}", "original");
  const std::vector<double> auc{0.7, 0.8, 0.9, 0.79, 0.79};
  for (std::size_t i = 0; i < auc.size(); ++i) {
    const auto values = round_of({{"train-auc", 0.1}, {"valid-auc", auc[i]}});
    ours.step(Mode::global, static_cast<std::int64_t>(i), values);
    EXPECT_EQ(original.step(Mode::global, static_cast<std::int64_t>(i), values), "");
  }
  ASSERT_EQ(ours.told.size(), 1U) << "12 % below its best, twice";
  SeriesBench stated("overfit", "{}", "original");
  EXPECT_EQ(stated.step(Mode::global, 0,
                        {{"train-auc", 0.1, core::Role::metric, core::Direction::min},
                         {"valid-auc", 0.9, core::Role::metric, core::Direction::min}}),
            "valid-auc: hit")
      << "what is stated decides";
}

TEST(Overfit, WhereEveryStepIsEvaluatedHalfOfTheGainMustBeLost) {
  const auto rounds = [](const std::vector<double>& values, std::int64_t every) {
    SeriesBench rule("overfit", "{noise_factor: 0}");
    for (std::size_t i = 0; i < values.size(); ++i) {
      rule.step(Mode::global, every * static_cast<std::int64_t>(i),
                round_of({{"train-rmse", 0.1}, {"valid-rmse", values[i]}}));
    }
    return rule.told.size();
  };
  EXPECT_EQ(rounds({1, 0.5, 0.75, 0.75, 0.75}, 1), 0U) << "half of it is the limit";
  EXPECT_EQ(rounds({1, 0.5, 0.76, 0.76, 0.76}, 1), 1U);
  EXPECT_EQ(rounds({1, 0.5, 0.75, 0.75, 0.75}, 10), 1U) << "30 steps are time enough";
}

// Rounds of boosting: (training, evaluation) of each, and how often it is told.
std::size_t told_of_rounds(const std::vector<std::pair<double, double>>& rounds, const char* with,
                           std::int64_t every = 1) {
  SeriesBench rule("overfit", with);
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    rule.step(Mode::train, every * static_cast<std::int64_t>(i),
              {{"train-rmse", rounds[i].first}, {"valid-rmse", rounds[i].second}});
  }
  return rule.told.size();
}

TEST(Overfit, RoundsThatGiveBackASeventhOfTheGainWhileTrainingGoesOnAreTold) {
  const std::pair<double, double> first{1, 1};
  const std::pair<double, double> best{0.5, 0.5};
  const auto told = [&](double training, double value, const char* with) {
    const std::pair<double, double> now{training, value};
    // Five of them: the first three are too few to tell what a single evaluation wavers by.
    return told_of_rounds({first, best, now, now, now, now, now}, with);
  };
  EXPECT_EQ(told(0.34, 0.58, "{}"), 1U);
  EXPECT_EQ(told(0.34, 0.575, "{}"), 0U) << "0.15 of the gain is the limit";
  EXPECT_EQ(told(0.35, 0.58, "{}"), 0U) << "and 0.7 of training at the best";
  EXPECT_EQ(told(0.34, 0.58, "{back_share: 0}"), 0U);
  EXPECT_EQ(told(0.34, 0.58, "{patience: 4}"), 0U);
  EXPECT_EQ(
      told_of_rounds({first, best, {0.34, 0.58}, {0.34, 0.58}, {0.34, 0.5}, {0.34, 0.58}}, "{}"),
      0U)
      << "three in a row";
  // A good model wavers by as much: every other value is as low as the best.
  EXPECT_EQ(told_of_rounds({{1, 1},
                            {0.5, 0.6},
                            {0.45, 0.5},
                            {0.4, 0.6},
                            {0.34, 0.52},
                            {0.3, 0.61},
                            {0.25, 0.59},
                            {0.2, 0.6}},
                           "{}"),
            0U);
}

TEST(Overfit, RoundsThatGainNothingOfLittleAreToldAfterThree) {
  const auto told = [](double training, double value, const char* with, std::int64_t every = 1) {
    const std::pair<double, double> now{training, value};
    return told_of_rounds({{1, 1}, now, now, now}, with, every);
  };
  EXPECT_EQ(told(0.996, 1, "{}"), 1U);
  EXPECT_EQ(told(0.996, 0.9995, "{}"), 0U) << "an eighth";
  EXPECT_EQ(told(0.998, 1, "{}"), 0U) << "training has gained 0.2 %";
  EXPECT_EQ(told(0.996, 1, "{gain_share: 0}"), 0U);
  EXPECT_EQ(told(0.996, 1, "{}", 5), 0U) << "they are no rounds";
}

TEST(Overfit, BesideALossGrowingMetricsMustGainNothingForFourRounds) {
  const auto told = [](int rounds, double training, double value, const std::string& beside) {
    SeriesBench rule("overfit");
    for (int i = 0; i <= rounds; ++i) {
      const bool first = i == 0;
      rule.step(Mode::train, i,
                {{"train-auc", first ? 0.5 : training, core::Role::metric},
                 {"valid-auc", first ? 0.45 : value, core::Role::metric},
                 {beside, 1 - 0.1 * i},
                 {"valid-logloss", 1 - 0.1 * i}});
    }
    return !rule.told.empty();
  };
  EXPECT_TRUE(told(4, 0.9, 0.46, "train-logloss"));
  EXPECT_FALSE(told(3, 0.9, 0.46, "train-logloss"));
  EXPECT_FALSE(told(9, 0.9, 0.5, "train-logloss")) << "where training was at first";
  EXPECT_FALSE(told(9, 0.54, 0.45, "train-logloss")) << "training has gained next to nothing";
  EXPECT_TRUE(told(9, 0.9, 0.2, "train-logloss")) << "worse than at first";
}

TEST(Overfit, ASteepRiseIsToldOnePassSooner) {
  const auto told = [](const std::vector<double>& values, double training, const char* with) {
    Training job(with);
    for (const double value : values) {
      job.train({training, training});
      job.evaluate({value});
    }
    return job.finish().size();
  };
  const char* ours = "{noise_factor: 0}";
  EXPECT_EQ(told({1, 0.5, 0.53, 0.54}, 0.2, ours), 1U);
  EXPECT_EQ(told({1, 0.5, 0.52, 0.54}, 0.2, ours), 0U) << "4 % at first";
  EXPECT_EQ(told({1, 0.5, 0.53, 0.53}, 0.2, ours), 0U) << "it rises no more";
  EXPECT_EQ(told({1, 0.5, 0.53, 0.54}, 0.27, ours), 0U) << "less than twice the training loss";
  EXPECT_EQ(told({1, 0.5, 0.53, 0.54}, 0.2, "{noise_factor: 0, steep_threshold: 0}"), 0U);
}

TEST(Overfit, WhatWasGainedAndIsGivenBackIsToldOnePassSooner) {
  const auto told = [](const std::vector<double>& values, const std::vector<double>& training,
                       const char* with) {
    Training job(with);
    for (std::size_t i = 0; i < values.size(); ++i) {
      job.train({training[i], training[i]});
      job.evaluate({values[i]});
    }
    return job.finish().size();
  };
  const std::vector<double> falls{0.9, 0.4, 0.2, 0.2};
  EXPECT_EQ(told({1, 0.5, 0.61, 0.605}, falls, "{}"), 1U) << "whatever a single pass wavers by";
  EXPECT_EQ(told({1, 0.5, 0.575, 0.575}, falls, "{}"), 0U) << "0.15 is the limit";
  EXPECT_EQ(told({1, 0.5, 0.58, 0.58}, falls, "{}"), 1U) << "at twice the training loss";
  const std::vector<double> halves{0.9, 0.6, 0.4, 0.4};
  EXPECT_EQ(told({1, 0.5, 0.58, 0.58}, halves, "{}"), 0U);
  EXPECT_EQ(told({1, 0.5, 0.58, 0.59}, halves, "{}"), 1U) << "it still rises";
  EXPECT_EQ(told({0.5, 0.6, 0.61}, {1.2, 1.0, 0.9}, "{}"), 0U) << "below training";
  EXPECT_EQ(told({0.9, 1.0, 1.01}, {1.2, 0.8, 0.7}, "{}"), 1U)
      << "the first is the best: training had gained 0.3 until then";
  EXPECT_EQ(told({0.5, 0.8, 0.7, 0.69}, falls, "{}"), 0U) << "the first one was a lucky one";
  EXPECT_EQ(told({1, 0.5, 0.61, 0.605}, {0.9, 0.2, 0.2, 0.2}, "{}"), 0U) << "training stands";
  EXPECT_EQ(told({1, 0.5, 0.61, 0.605}, falls, "{back_share: 0}"), 0U);
}

TEST(Overfit, ANegativeLossThatRisesOnBothSetsHasNotTurned) {
  const auto told = [](double training) {
    Training job("{noise_factor: 0}");
    for (const double first : {-0.2, -0.5}) {
      job.train({-0.5});
      job.evaluate({first});
    }
    for (int i = 0; i < 4; ++i) {
      job.train({training});
      job.evaluate({-0.1});
    }
    return job.finish().size();
  };
  EXPECT_EQ(told(-0.1), 0U) << "objectives of reinforcement rise to zero";
  EXPECT_EQ(told(-0.41), 0U);
  EXPECT_EQ(told(-0.43), 1U) << "it shares less than a fifth of the rise";
}

// The weight of a penalty grows, or harder samples come in: nothing was learned by heart.
TEST(Overfit, AnEvaluationThatRisesWithTrainingHasNotTurned) {
  const auto told = [](double training) {
    Training job("{noise_factor: 0}");
    for (const double first : {1.0, 0.5}) {
      job.train({0.5});
      job.evaluate({first});
    }
    for (int i = 0; i < 4; ++i) {
      job.train({training});
      job.evaluate({1.0});
    }
    return job.finish().size();
  };
  EXPECT_EQ(told(1), 0U);
  EXPECT_EQ(told(0.61), 0U);
  EXPECT_EQ(told(0.59), 1U) << "it shares less than a fifth of the rise";
  EXPECT_EQ(told(0.5), 1U) << "training stands";
}

TEST(Overfit, WholeSamplesAreLeftOutOfTheDefault) {
  SeriesBench ours("overfit", "{patience: 1, noise_factor: 0}");
  SeriesBench original("overfit", "{}", "original");
  for (std::int64_t i = 0; i < 4; ++i) {
    const auto values =
        round_of({{"train-error", 0.1}, {"valid-error", 0.1 + 0.1 * static_cast<double>(i)}});
    EXPECT_EQ(ours.step(Mode::global, i, values), "");
    EXPECT_EQ(original.step(Mode::global, i, values),
              i == 0 ? "valid-error: ok" : "valid-error: hit");
  }
}

TEST(Overfit, PartsOfWordsNameNoSet) {
  SeriesBench rule("overfit", "{patience: 1, ratio_threshold: 0}");
  for (const char* name : {"retrieval_loss", "contest_loss", "interval_loss", "medieval/loss"}) {
    EXPECT_EQ(rule.step(Mode::train, 0, {{name, 1}}), "") << name;
  }
  EXPECT_EQ(rule.step(Mode::train, 1, {{"Val/Loss", 1}}), "Val/Loss: ok");
  EXPECT_EQ(rule.step(Mode::train, 1, {{"loss.test", 1}}), "loss.test: ok");
}

TEST(Overfit, OfNumberedSetsTheLowestIsTheTrainingSet) {
  SeriesBench rule("overfit", "{}", "original");
  EXPECT_EQ(rule.step(Mode::global, 0,
                      round_of({{"validation_0-logloss", 1}, {"validation_1-logloss", 1.2}})),
            "validation_1-logloss: hit")
      << "eval_set=[(train), (validation)]";
  EXPECT_EQ(rule.step(Mode::global, 1, round_of({{"validation_0-logloss", 1}})), "")
      << "alone it is what its name says";
  SeriesBench named("overfit", "{train_set: validation_1}", "original");
  EXPECT_EQ(named.step(Mode::global, 0,
                       round_of({{"validation_0-logloss", 1.2}, {"validation_1-logloss", 1}})),
            "validation_0-logloss: hit");
  SeriesBench both("overfit", "{}", "original");
  EXPECT_EQ(
      both.step(
          Mode::global, 0,
          round_of({{"train-rmse", 1}, {"validation_0-rmse", 1.2}, {"validation_1-rmse", 1.05}})),
      "validation_1-rmse: ok; validation_0-rmse: hit")
      << "a set called train is the training set";
}

// --------------------------------------------------------------------------- means and strikes

TEST(Overfit, TheTrainingMeanBeginsAnewBehindEachPass) {
  SeriesBench rule("overfit", "{}", "original");
  rule.step(Mode::train, 0, {{"a_loss", 1}, {"b_loss", 1}});
  EXPECT_EQ(rule.pass(0, {{"a_loss", 1}}), "a_loss: ok");
  rule.step(Mode::train, 1, {{"a_loss", 0.5}, {"b_loss", 0.5}});
  // b is evaluated for the first time: its mean is of the steps since the pass before, not of all.
  EXPECT_EQ(rule.pass(1, {{"b_loss", 0.6}}), "b_loss: hit");
  EXPECT_EQ(rule.told[0].finding.observed.value, (0.6 - 0.5) / 0.5);
  EXPECT_EQ(rule.pass(2, {{"a_loss", 0.54}}), "a_loss: ok") << "none since: the last one holds";
}

TEST(Overfit, AMeanOfNothingFiniteIsInsufficientAndNotKept) {
  const double nan = std::nan("");
  SeriesBench rule("overfit", "{patience: 2}", "original");
  rule.step(Mode::train, 0, {{"loss", 1}});
  EXPECT_EQ(rule.pass(0, {{"loss", 2}}), "loss: ok") << "one strike";
  rule.step(Mode::train, 1, {{"loss", nan}});
  EXPECT_EQ(rule.pass(1, {{"loss", 2}}), "loss: insufficient_data");
  EXPECT_EQ(rule.pass(2, {{"loss", 2}}), "loss: insufficient_data") << "nothing to go back to";
  rule.step(Mode::train, 2, {{"loss", 1}});
  EXPECT_EQ(rule.pass(3, {{"loss", nan}}), "loss: insufficient_data");
  rule.step(Mode::train, 3, {{"loss", 1}});
  EXPECT_EQ(rule.pass(4, {{"loss", 2}}), "loss: hit") << "the strike was left";
}

TEST(Overfit, LossesThatDoNotPairAreComparedByTheirMeans) {
  SeriesBench rule("overfit", "{}", "original");
  rule.step(Mode::train, 0, {{"loss_a", 1}, {"loss_b", 3}});
  EXPECT_EQ(rule.pass(0, {{"score_loss", 2.5}}), "losses: hit") << "25 % above 2";
  SeriesBench paired("overfit", "{}", "original");
  paired.step(Mode::train, 0, {{"loss_a", 1}, {"loss_b", 3}});
  EXPECT_EQ(paired.pass(0, {{"loss_a", 1}, {"score_loss", 99}}), "loss_a: ok")
      << "where one pairs up, those that do not are left out";
}

TEST(Overfit, NearZeroTheRatioExplodesAndBothLossesAreShown) {
  SeriesBench rule("overfit", "{}", "original");
  rule.step(Mode::train, 0, {{"loss", 0}});
  EXPECT_EQ(rule.pass(0, {{"loss", 1e-6}}), "loss: hit");
  EXPECT_NEAR(rule.told[0].finding.observed.value, 1e6, 1);
  EXPECT_NE(rule.told[0].finding.summary.find("is 1e-06, against 0 in training"),
            std::string::npos);
}

TEST(Overfit, TheRiseMustBeMoreThanTheSpreadOfTheEvaluation) {
  // A set of few samples, around 0.5 for good: 2 % above the best is nothing there.
  const std::vector<double> around{0.5, 0.52, 0.48, 0.53, 0.49, 0.51, 0.47, 0.52, 0.5, 0.54};
  SeriesBench ours("overfit");
  SeriesBench plain("overfit", "{noise_factor: 0}");
  for (std::int64_t i = 0; i < 60; ++i) {
    const double value = around[static_cast<std::size_t>(i * 7 % 10)];
    ours.step(Mode::train, i, {{"loss", 1}});
    plain.step(Mode::train, i, {{"loss", 1}});
    ours.pass(i, {{"loss", value}});
    plain.pass(i, {{"loss", value}});
  }
  EXPECT_TRUE(ours.told.empty());
  EXPECT_FALSE(plain.told.empty());
  // A steady rise is seen whatever was before.
  int hits = 0;
  for (std::int64_t i = 60; i < 80; ++i) {
    ours.step(Mode::train, i, {{"loss", 1}});
    hits += ours.pass(i, {{"loss", 0.5 + 0.01 * static_cast<double>(i - 60)}}) == "loss: hit";
  }
  EXPECT_GT(hits, 8);
}

TEST(Overfit, StartStepCountsTrainingSteps) {
  SeriesBench rule("overfit", "{start_step: 3}", "original");
  for (std::int64_t i = 0; i < 3; ++i) {
    rule.step(Mode::train, i, {{"loss", 1}});
    EXPECT_EQ(rule.pass(100 + i, {{"loss", 2}}), "loss: ok") << i;
  }
  rule.step(Mode::train, 3, {{"loss", 1}});
  EXPECT_EQ(rule.pass(103, {{"loss", 2}}), "loss: hit");
  SeriesBench rounds("overfit", "{start_step: 3}", "original");
  const auto values = round_of({{"train-rmse", 1}, {"test-rmse", 2}});
  EXPECT_EQ(rounds.step(Mode::global, 2, values), "test-rmse: ok");
  EXPECT_EQ(rounds.step(Mode::global, 3, values), "test-rmse: hit") << "every step trains";
}

}  // namespace
}  // namespace tocsin::rules
