#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/rules/rule_bench.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;

std::vector<BenchValue> loss(double value, const std::string& name = "loss") {
  return {{name, value}};
}

TEST(Overtraining, OriginalNeedsBothToHaveStalled) {
  SeriesBench rule("overtraining", "{patience_train: 2, patience_validation: 2}", "original");
  EXPECT_EQ(rule.step(Mode::train, 0, loss(1)), "loss: insufficient_data") << "no evaluation yet";
  EXPECT_EQ(rule.pass(0, loss(1)), "loss: ok");
  EXPECT_EQ(rule.step(Mode::train, 1, loss(0.9901)), "loss: ok") << "0.0099 is no improvement";
  EXPECT_EQ(rule.step(Mode::train, 2, loss(1)), "loss: ok")
      << "training has stalled, evaluation not";
  EXPECT_EQ(rule.pass(1, loss(1)), "loss: ok");
  EXPECT_EQ(rule.pass(2, loss(1)), "loss: hit");
  EXPECT_EQ(rule.step(Mode::train, 3, loss(2)), "loss: hit") << "judged at every new value";
  EXPECT_EQ(rule.step(Mode::train, 4, loss(0.9)), "loss: ok") << "an improvement of 0.1";
}

TEST(Overtraining, AnImprovementIsMoreThanDelta) {
  SeriesBench rule("overtraining", "{patience_train: 1, require: any, delta: 0.25}", "original");
  EXPECT_EQ(rule.step(Mode::train, 0, loss(2)), "loss: ok");
  EXPECT_EQ(rule.step(Mode::train, 1, loss(1.75)), "loss: hit") << "exactly delta";
  EXPECT_EQ(rule.step(Mode::train, 2, loss(1.7)), "loss: ok") << "against the best, which is 2";
}

TEST(Overtraining, AnyIsDecidedByTheSideThatIsThere) {
  SeriesBench train("Overtraining", "{patience_train: 2, require: any}", "original");
  train.step(Mode::train, 0, loss(1));
  train.step(Mode::train, 1, loss(1));
  EXPECT_EQ(train.step(Mode::train, 2, loss(1)), "loss: hit");
  SeriesBench evaluation("Overtraining", "{patience_validation: 2, require: any}", "original");
  evaluation.pass(0, loss(1));
  evaluation.pass(1, loss(1));
  EXPECT_EQ(evaluation.pass(2, loss(1)), "loss: hit");
}

TEST(Overtraining, TheDefaultsOfTheOriginal) {
  SeriesBench rule("overtraining", "{}", "original");
  for (std::int64_t i = 0; i <= 9; ++i) {
    rule.step(Mode::train, i, loss(1));
    EXPECT_EQ(rule.pass(i, loss(1)), "loss: ok") << i;
  }
  EXPECT_EQ(rule.pass(10, loss(1)), "loss: hit") << "ten passes without an improvement";
}

TEST(Overtraining, NonFiniteValuesAreNoImprovement) {
  SeriesBench rule("overtraining", "{patience_train: 3, require: any}", "original");
  const double nan = std::nan("");
  EXPECT_EQ(rule.step(Mode::train, 0, loss(nan)), "loss: ok");
  EXPECT_EQ(rule.step(Mode::train, 1, loss(1)), "loss: ok") << "the first finite value is the best";
  EXPECT_EQ(rule.step(Mode::train, 2, loss(nan)), "loss: ok");
  EXPECT_EQ(rule.step(Mode::train, 3, loss(HUGE_VAL)), "loss: ok");
  EXPECT_EQ(rule.step(Mode::train, 4, loss(nan)), "loss: insufficient_data") << "three in a row";
  EXPECT_EQ(rule.step(Mode::train, 5, loss(nan)), "loss: insufficient_data");
  EXPECT_EQ(rule.step(Mode::train, 6, loss(1)), "loss: hit");
}

TEST(Overtraining, PairsSetsOfBoostingRounds) {
  SeriesBench rule("overtraining", "{patience_train: 2, patience_validation: 2}", "original");
  const auto round = [&](std::int64_t step, double train, double valid, double test) {
    return rule.step(Mode::global, step,
                     {{"train-rmse", train, Role::metric},
                      {"valid-rmse", valid, Role::metric},
                      {"test-rmse", test, Role::metric},
                      {"valid-auc", 0.5, Role::metric}});
  };
  round(0, 1, 1, 1);
  round(1, 1, 1, 0.5);
  round(2, 1, 1, 0.4);
  ASSERT_EQ(rule.told.size(), 1U) << "the test set still improves";
  EXPECT_EQ(rule.told[0].metric, "valid-rmse");
}

TEST(Overtraining, LossesWithoutAPartnerAreAveraged) {
  SeriesBench rule("overtraining", "{patience_train: 2, patience_validation: 2}", "original");
  const auto train = [&](std::int64_t step, double a, double b) {
    return rule.step(Mode::train, step, {{"a_loss", a}, {"b_loss", b}});
  };
  const auto evaluate = [&](std::int64_t step, double c, double d) {
    return rule.pass(step, {{"c_loss", c}, {"d_loss", d}});
  };
  train(0, 1, 3);
  EXPECT_EQ(evaluate(0, 1, 2), "losses: ok");
  EXPECT_EQ(train(1, 3, 1), "losses: ok");
  EXPECT_EQ(evaluate(1, 0.5, 2.5), "losses: ok");
  EXPECT_EQ(train(2, 2, 2), "losses: ok") << "one evaluation without an improvement so far";
  EXPECT_EQ(evaluate(2, 0.25, 2.75), "losses: hit") << "c_loss falls, the mean does not";
  EXPECT_EQ(evaluate(3, 0.25, 1.75), "losses: ok") << "the mean of 1 is an improvement";
}

TEST(Overtraining, BesideAPairALossWithoutAPartnerIsLeftOut) {
  SeriesBench rule("overtraining", "{patience_train: 1, patience_validation: 1}", "original");
  const std::vector<BenchValue> first{{"loss", 1}, {"extra_loss", 1}};
  rule.step(Mode::train, 0, loss(1));
  EXPECT_EQ(rule.pass(0, first), "loss: ok");
  rule.step(Mode::train, 1, loss(1));
  EXPECT_EQ(rule.pass(1, first), "loss: hit");
}

TEST(Overtraining, TheDefaultLooksAtTheEvaluationsOwnBest) {
  SeriesBench rule("overtraining");
  const std::vector<double> passes{1.0, 0.8, 0.6, 0.5, 0.526, 0.524};
  std::int64_t step = 0;
  for (const double value : passes) {
    rule.step(Mode::train, step++, loss(0.1));
    EXPECT_EQ(rule.pass(step, loss(value)), "loss: ok") << value;
  }
  rule.step(Mode::train, step++, loss(0.1));
  EXPECT_EQ(rule.pass(step, loss(0.526)), "loss: ok") << "0.524 was less than 5 % above the best";
  rule.step(Mode::train, step++, loss(0.1));
  EXPECT_EQ(rule.pass(step, loss(0.526)), "loss: hit");
  EXPECT_NEAR(rule.told[0].finding.observed.value, 0.052, 1e-12);
  EXPECT_EQ(rule.told[0].finding.first_step, 4) << "from its best on";
}

TEST(Overtraining, TheBestMustLieATenthOfTheRunBehind) {
  SeriesBench rule("overtraining", "{noise_factor: 0}");
  rule.step(Mode::train, 90, loss(1));
  rule.pass(0, loss(0.5));
  rule.step(Mode::train, 95, loss(1));
  EXPECT_EQ(rule.pass(1, loss(0.6)), "loss: ok");
  rule.step(Mode::train, 99, loss(1));
  EXPECT_EQ(rule.pass(2, loss(0.6)), "loss: ok") << "9 of 99 steps behind";
  rule.step(Mode::train, 100, loss(1));
  EXPECT_EQ(rule.pass(3, loss(0.6)), "loss: hit") << "10 of 100";
}

TEST(Overtraining, ANoisyEvaluationIsNoTurn) {
  // Sets of a few samples: 10 % up and down around 0.5 for good.
  const std::vector<double> around{0.5, 0.56, 0.47, 0.53, 0.45, 0.55, 0.49, 0.57, 0.46, 0.54};
  SeriesBench quiet("overtraining");
  SeriesBench plain("overtraining", "{noise_factor: 0}");
  for (std::int64_t i = 0; i < 60; ++i) {
    const double value = around[static_cast<std::size_t>(i * 7 % 10)];
    for (SeriesBench* rule : {&quiet, &plain}) {
      rule->step(Mode::train, i, loss(1));
      rule->pass(i, loss(value));
    }
  }
  EXPECT_TRUE(quiet.told.empty());
  EXPECT_FALSE(plain.told.empty());
}

TEST(Overtraining, DirectionDecidesAndWholeSamplesAreTooCoarse) {
  SeriesBench rule("overtraining", "{noise_factor: 0}");
  const std::vector<double> auc{0.7, 0.8, 0.9, 0.8, 0.8};
  for (std::size_t i = 0; i < auc.size(); ++i) {
    rule.step(Mode::global, static_cast<std::int64_t>(i),
              {{"test-auc", auc[i], Role::metric}, {"test-error", 1 - auc[i], Role::metric}});
  }
  ASSERT_EQ(rule.told.size(), 1U);
  EXPECT_EQ(rule.told[0].metric, "test-auc");
  EXPECT_NE(rule.told[0].finding.summary.find("below its best of 0.9"), std::string::npos);
}

TEST(Overtraining, WithoutEvaluationThereIsNoData) {
  RuleHarness rule = RuleHarness::of("overtraining");
  FakeWorker worker;
  for (std::int64_t step = 0; step < 20; ++step) {
    rule.feed(worker.scalars(Mode::train, {{"loss", step, 1.0}}));
    rule.feed(worker.step_end(Mode::train, step));
  }
  rule.feed(worker.end());
  EXPECT_TRUE(rule.firing().empty());
  EXPECT_EQ(rule.rule_state(), "NoData");
}

TEST(Overtraining, AveragesWorkersThroughTheEngine) {
  RuleHarness rule =
      RuleHarness::of("overtraining", "{patience_train: 1, patience_validation: 1}", "original");
  FakeWorker workers[] = {FakeWorker("digits", "run", 0, 2), FakeWorker("digits", "run", 1, 2)};
  const auto both = [&](Mode mode, std::int64_t step, double left, double right) {
    rule.feed(workers[0].scalars(mode, {{"loss", step, left}}));
    rule.feed(workers[1].scalars(mode, {{"loss", step, right}}));
    for (FakeWorker& worker : workers) rule.feed(worker.step_end(mode, step));
  };
  both(Mode::train, 0, 1, 1);
  both(Mode::eval, 0, 1, 1);
  both(Mode::train, 1, 0.5, 1.5);  // mean 1: no improvement
  for (FakeWorker& worker : workers) ++worker.header.pass;
  both(Mode::eval, 1, 0.5, 1.5);
  both(Mode::train, 2, 1, 1);
  ASSERT_EQ(rule.firing().size(), 1U);
}

}  // namespace
}  // namespace tocsin::rules
