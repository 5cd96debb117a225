#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/rule_harness.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;

const char kTarget[] = "MSELoss_input_1";

struct Guesses : SteppedJob {
  explicit Guesses(const std::string& with = "{steps: 2, quantity_steps: 2}")
      : SteppedJob{RuleHarness::of("chance_level", with)} {
    rule.feed(worker.dictionary({{core::DictionaryType::tensor, "y", Role::label},
                                 {core::DictionaryType::tensor, kTarget, Role::label},
                                 {core::DictionaryType::scalar, "loss", Role::loss},
                                 {core::DictionaryType::scalar, "val_loss", Role::loss},
                                 {core::DictionaryType::scalar, "other_loss", Role::loss},
                                 {core::DictionaryType::scalar, "learning_rate", Role::metric}}));
  }
  void log(double loss, const std::string& name = "loss", Role role = Role::loss) {
    rule.feed(worker.scalars(Mode::train, {{name, step, loss, role}}));
  }
  /// Steps with a loss each, the last of them with labels: of two classes `right` and `wrong` each.
  void labels(double right, double wrong, double loss = 0.7) {
    for (int i = 0; i < 4; ++i) {
      log(loss + (i % 2 == 0 ? 0.01 : -0.01));
      if (i < 3) end();
    }
    const std::vector<double> cells{0, 0, right, 0, 1, wrong, 1, 0, wrong, 1, 1, right};
    rule.feed(worker.summary(Mode::train, step, {row_of("y", Role::label, 100, 1, 1)}, {},
                             {{core::VectorStat::confusion, 0, cells}}));
    end();
  }
  void targets(double spread, double loss) {
    for (int i = 0; i < 4; ++i) {
      log(loss + (i % 2 == 0 ? 0.01 : -0.01));
      if (i < 3) end();
    }
    std::vector<double> values;
    for (int i = 0; i < 400; ++i) values.push_back(i % 2 == 0 ? 3 + spread : 3 - spread);
    rule.feed(worker.tensors(Mode::train, step, {{kTarget, values, Role::label}}));
    end();
  }
};

TEST(ChanceLevel, FiresWhenAsManyAreRightAsByChance) {
  Guesses job;
  job.labels(250, 250);
  EXPECT_TRUE(job.rule.firing().empty()) << "one step with labels is no window";
  job.labels(250, 250);
  const auto issues = job.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].kind, "classes");
  EXPECT_EQ(issues[0].evidence.observed.value, 1000);
  EXPECT_EQ(issues[0].summary,
            "The model tells nothing of y: of 2000 labels up to train step 7 1000 were right, and "
            "1000 would be by chance; the loss does not fall.");
}

TEST(ChanceLevel, QuantitiesAskForMoreStepsThanClasses) {
  const auto told_at = [](bool classes) {
    Guesses job("{}");
    for (int i = 1; i <= 14; ++i) {
      classes ? job.labels(250, 250) : job.targets(2, 4);
      if (!job.rule.firing().empty()) return i;
    }
    return 0;
  };
  EXPECT_EQ(told_at(true), 10);
  EXPECT_EQ(told_at(false), 12);
}

// Of 2000 labels 1000 are right by chance, give or take 22.4: 1055 + 44.7 < 1100 holds, 1056 + 44.7 does not.
TEST(ChanceLevel, ATenthOfTheRestIsEnough) {
  Guesses below;
  below.labels(263, 237);
  below.labels(264, 236);
  EXPECT_EQ(below.rule.firing().size(), 1U) << "1054 right";
  Guesses above;
  above.labels(264, 236);
  above.labels(264, 236);
  EXPECT_EQ(above.status(), "NoIssuesFound") << "1056 right";
}

TEST(ChanceLevel, ALossThatFallsIsASlowOne) {
  Guesses job;
  job.labels(250, 250, 0.80);
  job.labels(250, 250, 0.70);
  job.labels(250, 250, 0.60);
  EXPECT_TRUE(job.rule.firing().empty());
  job.labels(250, 250, 0.60);
  EXPECT_EQ(job.rule.firing().size(), 1U) << "it has stopped";
}

TEST(ChanceLevel, TheWarmUpOfARateIsNotJudged) {
  Guesses job;
  for (int i = 1; i <= 5; ++i) {
    job.log(0.1 * i, "learning_rate", Role::metric);
    job.labels(250, 250);
  }
  EXPECT_TRUE(job.rule.firing().empty());
  job.log(0.1, "learning_rate", Role::metric);
  job.labels(250, 250);
  EXPECT_EQ(job.rule.firing().size(), 1U);
}

TEST(ChanceLevel, OneAnswerIsAGoodOneWhereNearlyAllAreOfOneClass) {
  Guesses job;
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 4; ++k) {
      job.log(0.4);
      if (k < 3) job.end();
    }
    job.rule.feed(job.worker.summary(Mode::train, job.step, {row_of("y", Role::label, 100, 1, 1)},
                                     {},
                                     {{core::VectorStat::confusion, 0, {0, 0, 850, 1, 0, 150}}}));
    job.end();
  }
  EXPECT_EQ(job.status(), "NoData");
}

/// How the kind is called, of 850 and 150 labels of this shape and of losses around this one.
std::string kind_of(std::vector<std::int64_t> shape, double loss, double fall = 0) {
  Guesses job;
  job.rule.feed(job.worker.dictionary(
      {{core::DictionaryType::tensor, "places", Role::label, core::Dtype::i64, std::move(shape)}}));
  for (int i = 0; i < 12; ++i) {
    job.log(loss - fall * i + (i % 2 == 0 ? 0.001 : -0.001));
    if (i % 4 == 3) {
      job.rule.feed(job.worker.summary(Mode::train, job.step,
                                       {row_of("places", Role::label, 1000, 1, 1)}, {},
                                       {{core::VectorStat::confusion, 0, {0, 0, 850, 1, 0, 150}}}));
    }
    job.end();
  }
  return job.rule.firing().empty() ? std::string() : job.rule.firing()[0].kind;
}

// The entropy of 0.85 and 0.15 is 0.4227.
TEST(ChanceLevel, OfLabelsAtPlacesTheirEntropyIsWhatAGuessCosts) {
  EXPECT_EQ(kind_of({50, 20}, 0.42), "entropy");
  EXPECT_EQ(kind_of({1000}, 0.42), "") << "one label of a sample each";
  EXPECT_EQ(kind_of({50, 20}, 0.40), "") << "less than 0.95 of it";
  EXPECT_EQ(kind_of({50, 20}, 0.46), "entropy");
  EXPECT_EQ(kind_of({50, 20}, 0.47), "") << "more than 1.1 of it is another loss";
  EXPECT_EQ(kind_of({50, 20}, 0.45, 0.002), "") << "it falls";
}

TEST(ChanceLevel, OnlyTheTrainingLossCounts) {
  Guesses job;
  job.log(0.1, "val_loss");
  job.labels(250, 250);
  job.labels(250, 250);
  EXPECT_EQ(job.rule.firing().size(), 1U);
  Guesses several;
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 4; ++k) {
      several.log(0.7, "other_loss");
      several.log(0.7);
      if (k < 3) several.end();
    }
    several.rule.feed(several.worker.summary(
        Mode::train, several.step, {row_of("y", Role::label, 100, 1, 1)}, {},
        {{core::VectorStat::confusion, 0, {0, 0, 500, 0, 1, 500, 1, 0, 500, 1, 1, 500}}}));
    several.end();
  }
  EXPECT_EQ(several.status(), "NoData") << "which of two losses is that of the labels?";
}

// The variance is 4; of 800 targets it is known to a twentieth: the limit is 0.9 · 4 · 1.05.
TEST(ChanceLevel, ASquaredErrorOfTheVarianceIsThatOfOneAnswer) {
  Guesses job;
  job.targets(2, 3.9);
  job.targets(2, 3.9);
  const auto issues = job.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].kind, "quantity");
  EXPECT_EQ(issues[0].evidence.tensor->name, kTarget);
  Guesses less;
  for (int i = 0; i < 5; ++i) less.targets(2, 3.5);
  EXPECT_EQ(less.status(), "NoIssuesFound") << "an eighth of the variance is told";
  Guesses sum;
  for (int i = 0; i < 5; ++i) sum.targets(2, 128);
  EXPECT_EQ(sum.status(), "NoData") << "no mean over the samples";
}

TEST(ChanceLevel, WhatIsNoMatrixIsNotCounted) {
  Guesses job;
  for (const std::vector<double>& bad :
       {std::vector<double>{0, 0}, {0, 0, -1}, {0, 0, 0.5}, {0, 70000, 5}, {0, 0, std::nan("")}}) {
    job.log(0.7);
    job.rule.feed(job.worker.summary(Mode::train, job.step, {row_of("y", Role::label, 100, 1, 1)},
                                     {}, {{core::VectorStat::confusion, 0, bad}}));
    job.end();
  }
  EXPECT_EQ(job.status(), "NoData");
}

}  // namespace
}  // namespace tocsin::rules
