#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/rule_harness.h"

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

}  // namespace
}  // namespace tocsin::rules
