#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/rule_harness.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;

// A row with this variance, of so many elements around 0.
core::SummaryRow spread(const std::string& name, Role role, double variance,
                        std::uint64_t count = 100) {
  core::SummaryRow row = row_of(name, role, count, 1, 1);
  row.m2 = variance * static_cast<double>(count);
  return row;
}
core::SummaryRow input(const std::string& name, double variance, std::uint64_t count = 100) {
  return spread(name, Role::activation_in, variance, count);
}
core::SummaryRow constant(const std::string& name, std::uint64_t count) {
  core::SummaryRow row = spread(name, Role::weight, 0, count);
  row.min = row.max = 0.5;
  return row;
}

struct Start {
  RuleHarness rule;
  FakeWorker worker;
  std::int64_t step = 0;

  explicit Start(const std::string& with = "{}", const std::string& preset = "tocsin")
      : rule(RuleHarness::of("poor_weight_initialization", with, preset)) {
    rule.feed(worker.dictionary(
        {{core::DictionaryType::tensor, "w", Role::weight, core::Dtype::f32, {10, 10}},
         {core::DictionaryType::tensor, "norm", Role::weight, core::Dtype::f32, {100}},
         {core::DictionaryType::tensor, "scale", Role::weight, core::Dtype::f32, {100, 1, 1}},
         {core::DictionaryType::tensor, "gain", Role::weight, core::Dtype::f32, {4, 5, 5}},
         {core::DictionaryType::tensor, "relu_input"},
         {core::DictionaryType::tensor, "gelu_input"},
         {core::DictionaryType::tensor, "a", Role::activation_in},
         {core::DictionaryType::tensor, "c", Role::activation_in},
         {core::DictionaryType::tensor, "rnn_input_0", Role::activation_in},
         {core::DictionaryType::tensor, "rnn_input_1", Role::activation_in},
         {core::DictionaryType::tensor, "tokens", Role::activation_in, core::Dtype::i64},
         {core::DictionaryType::scalar, "loss", Role::loss},
         {core::DictionaryType::scalar, "loss2", Role::loss}}));
  }
  void send(const std::vector<core::SummaryRow>& rows, const std::vector<Statistic>& sent = {}) {
    rule.feed(worker.summary(Mode::train, step, rows, sent));
    end();
  }
  void loss(double value, const std::string& name = "loss") {
    rule.feed(worker.scalars(Mode::train, {{name, step, value, Role::loss}}));
  }
  void end() { rule.feed(worker.step_end(Mode::train, step++)); }
  std::string kinds() {
    std::string out;
    for (const core::Issue& issue : rule.firing()) out += issue.kind + " ";
    return out;
  }
  std::string status() {
    rule.feed(worker.end());
    return rule.rule_state();
  }
};

TEST(PoorWeightInitialization, TheLimitsOfOurPresetAreStillRight) {
  Start job;
  job.send({input("a", 1e-4), input("b", 1)});  // a ratio of 10 000
  job.send({input("a", 100), input("b", 1)});
  job.send({input("a", 0.02)});  // one layer has no ratio
  EXPECT_EQ(job.kinds(), "");
  EXPECT_EQ(job.status(), "NoIssuesFound");
}

TEST(PoorWeightInitialization, VariancesOutsideTheLimitsFire) {
  for (const double variance : {0.99e-4, 100.1, 0.0}) {
    Start job;
    job.send({input("a", variance)});
    EXPECT_EQ(job.kinds(), "variance ") << variance;
    EXPECT_EQ(job.rule.firing()[0].evidence.observed.value, variance);
  }
}

// What a residual branch gives may be next to nothing, where the sum is not.
TEST(PoorWeightInitialization, AQuarterOfTheLayersMustBeSmall) {
  const auto kinds = [](int small, const char* preset) {
    Start job("{}", preset);
    std::vector<core::SummaryRow> rows;
    for (int i = 0; i < 9; ++i)
      rows.push_back(input(std::string(1, static_cast<char>('a' + i)), i < small ? 5e-5 : 1));
    job.send(rows);
    return job.kinds();
  };
  EXPECT_EQ(kinds(2, "tocsin"), "") << "a quarter of nine is three";
  EXPECT_EQ(kinds(3, "tocsin"), "variance_ratio variance ");
  EXPECT_EQ(kinds(1, "original"), "variance_ratio ");
}

TEST(PoorWeightInitialization, IndicesOfAnEmbeddingAreNoActivations) {
  Start job;
  job.send({input("tokens", 1e6), input("a", 1)});
  EXPECT_EQ(job.kinds(), "");
  EXPECT_EQ(job.status(), "NoIssuesFound");
}

TEST(PoorWeightInitialization, LayersThatAreFarApartFire) {
  Start job;
  job.send({input("a", 0.005), input("b", 1), input("c", 51)});
  ASSERT_EQ(job.kinds(), "variance_ratio ");
  EXPECT_EQ(job.rule.firing()[0].summary,
            "The variance of c (51) is 10200 times that of a (0.005) at train step 0 on "
            "worker_0 (limit 10000).");
}

TEST(PoorWeightInitialization, TheOriginalComparesLayersOnly) {
  Start ten("{}", "original");
  ten.send({input("a", 1e-5), input("b", 1e-4)});
  EXPECT_EQ(ten.kinds(), "");
  Start eleven("{}", "original");
  eleven.send({input("a", 1), input("b", 11)});
  EXPECT_EQ(eleven.kinds(), "variance_ratio ");
  Start dead("{}", "original");
  dead.send({input("a", 0), input("b", 1)});
  EXPECT_EQ(dead.kinds(), "variance_ratio ");
  EXPECT_EQ(dead.rule.firing()[0].evidence.observed.value, 1e12);
}

TEST(PoorWeightInitialization, WeightsThatAreAllAlikeFire) {
  Start job;
  job.send({constant("w", 64), constant("norm", 100)});  // small; of rank 1
  EXPECT_EQ(job.kinds(), "");
  job.send({constant("w", 65)});
  ASSERT_EQ(job.kinds(), "constant_weights ");
  core::SummaryRow zero = constant("w", 65);
  zero.min = zero.max = 0;
  Start adapter("{}", "tocsin");
  adapter.send({zero});
  EXPECT_EQ(adapter.kinds(), "") << "set to zero on purpose";
  EXPECT_EQ(job.rule.firing()[0].evidence.tensor->name, "w");
  Start original("{}", "original");
  original.send({constant("w", 100)});
  EXPECT_EQ(original.kinds(), "");
}

TEST(PoorWeightInitialization, BesideOneThatDiffersAConstantIsASpread) {
  const auto kinds = [](std::vector<std::int64_t> shape) {
    Start job;
    job.rule.feed(job.worker.dictionary(
        {Entry{core::DictionaryType::tensor, "l.spread", Role::weight, core::Dtype::f32, {10, 10}},
         Entry{core::DictionaryType::tensor, "l.mean", Role::weight, core::Dtype::f32, shape}}));
    core::SummaryRow means = spread("l.mean", Role::weight, 0.01, 100);
    means.min = -0.3;
    means.max = 0.3;
    job.send({constant("l.spread", 100), means});
    return job.kinds();
  };
  EXPECT_EQ(kinds({10, 10}), "");
  EXPECT_EQ(kinds({4, 25}), "constant_weights ") << "of another shape";
}

// What all weights of a model multiply variances by: two matrices of 10 · 10, a vector beside them.
struct Gains : Start {
  explicit Gains(const std::string& with = "{}", const std::string& preset = "tocsin")
      : Start(with, preset) {
    const auto weight = [](const char* name, std::vector<std::int64_t> shape) {
      return Entry{core::DictionaryType::tensor, name, Role::weight, core::Dtype::f32,
                   std::move(shape)};
    };
    rule.feed(
        worker.dictionary({weight("v", {10, 10}), weight("scales", {100}), weight("wide", {4, 25}),
                           weight("few", {5, 6}), weight("any", {})}));
  }
  /// Elements of this mean square.
  static core::SummaryRow of(const std::string& name, double square, std::uint64_t count = 100) {
    core::SummaryRow row = spread(name, Role::weight, square, count);
    row.sum = 0;
    row.sumsq = row.m2;
    return row;
  }
  std::string of_all(const std::vector<core::SummaryRow>& rows) {
    send(rows);
    return kinds();
  }
};

TEST(PoorWeightInitialization, WeightsThatAreAllFarTooLargeFire) {
  EXPECT_EQ(Gains().of_all({Gains::of("wide", 4), Gains::of("v", 40)}), "") << "25 · 4 is right";
  Gains job;
  EXPECT_EQ(job.of_all({Gains::of("w", 10.1), Gains::of("v", 40)}), "large_weights ");
  EXPECT_EQ(job.rule.firing()[0].summary,
            "All 2 weight matrices start far too large: even w multiplies the variance of its "
            "input by 101 at train step 0 on worker_0 (usual: 1 to 3, limit 100).");
  EXPECT_EQ(job.rule.firing()[0].evidence.tensor->name, "w");
  EXPECT_EQ(Gains().of_all({Gains::of("wide", 4.1), Gains::of("w", 40)}), "large_weights ")
      << "4.1 · 25 inputs";
  EXPECT_EQ(Gains("{max_gain: 0}").of_all({Gains::of("w", 1e6), Gains::of("v", 1e6)}), "");
  EXPECT_EQ(Gains("{}", "original").of_all({Gains::of("w", 1e6), Gains::of("v", 1e6)}), "");
}

TEST(PoorWeightInitialization, OneMatrixOfAUsualSizeIsEnoughAgainstIt) {
  EXPECT_EQ(Gains().of_all({Gains::of("w", 1e6), Gains::of("v", 0.1)}), "");
  EXPECT_EQ(Gains().of_all({Gains::of("w", 1e6)}), "") << "one alone may be meant so";
  EXPECT_EQ(Gains().of_all({Gains::of("w", 1e6), Gains::of("v", std::nan(""))}), "");
  EXPECT_EQ(
      Gains().of_all({Gains::of("w", 1e6), Gains::of("scales", 1e6), Gains::of("few", 1e6, 30)}),
      "")
      << "a vector and a matrix of 30 elements do not count";
  EXPECT_EQ(Gains().of_all({Gains::of("w", 1e6), Gains::of("v", 1e6), Gains::of("wide", 0)}),
            "large_weights ")
      << "zeros are meant so, and say nothing";
}

// Embeddings are drawn from the standard normal distribution, and are no sums over inputs.
TEST(PoorWeightInitialization, TablesOfEmbeddingsAreNotTooLarge) {
  const auto table = [](double square, std::uint64_t width) {
    Gains job;
    const auto entry = [&](const char* name) {
      return Entry{core::DictionaryType::tensor,
                   name,
                   Role::weight,
                   core::Dtype::f32,
                   {10, static_cast<std::int64_t>(width)}};
    };
    job.rule.feed(job.worker.dictionary({entry("users"), entry("items")}));
    return job.of_all(
        {Gains::of("users", square, 10 * width), Gains::of("items", square, 10 * width)});
  };
  EXPECT_EQ(table(1, 500), "");
  EXPECT_EQ(table(1.09, 500), "");
  EXPECT_EQ(table(1.2, 500), "large_weights ");
  EXPECT_EQ(table(4, 8), "") << "32 in all";
  EXPECT_EQ(table(4.1, 8), "large_weights ") << "no table is drawn so";
}

TEST(PoorWeightInitialization, WithoutAShapeAMatrixIsTakenForASquare) {
  EXPECT_EQ(Gains().of_all({Gains::of("any", 2, 3600), Gains::of("w", 40)}), "large_weights ")
      << "2 · 60";
  EXPECT_EQ(Gains().of_all({Gains::of("any", 2, 2400), Gains::of("w", 40)}), "") << "2 · 49";
}

TEST(PoorWeightInitialization, ScalesAndGainsAreNoMatrices) {
  Start job;
  core::SummaryRow ones = constant("gain", 100);
  ones.min = ones.max = 1;
  job.send({constant("scale", 100), ones});
  EXPECT_EQ(job.kinds(), "") << "[100, 1, 1] is a vector, LayerNorm([4, 5, 5]) begins at 1";
  job.send({constant("gain", 100)});
  EXPECT_EQ(job.kinds(), "constant_weights ") << "no gain begins at 0.5";
}

TEST(PoorWeightInitialization, AFirstStateOfZerosIsNoActivation) {
  const auto zeros = [](const char* name) {
    core::SummaryRow row = input(name, 0);
    row.min = row.max = 0;
    return row;
  };
  Start job;
  job.send({input("a", 1), zeros("rnn_input_1")});
  EXPECT_EQ(job.kinds(), "");
  job.send({input("a", 1), zeros("rnn_input_0")});
  EXPECT_EQ(job.kinds(), "variance_ratio variance ") << "the data";
}

TEST(PoorWeightInitialization, NarrowGradientsFireInTheOriginal) {
  const auto gradient = [](std::uint64_t count = 4) {
    return row_of("gradient/w", Role::gradient, count, 1, 1);
  };
  Start wide("{}", "original");
  wide.send({gradient()},
            {{core::SparseStat::p05, 0, -0.0005}, {core::SparseStat::p95, 0, 0.0005}});
  EXPECT_EQ(wide.kinds(), "");
  wide.send({gradient()},
            {{core::SparseStat::p05, 0, -0.0004}, {core::SparseStat::p95, 0, 0.0005}});
  EXPECT_EQ(wide.kinds(), "gradient_range ");
  Start single("{}", "original");
  single.send({gradient(1)}, {{core::SparseStat::p05, 0, 0}, {core::SparseStat::p95, 0, 0}});
  EXPECT_EQ(single.kinds(), "");
  Start unsent("{}", "original");
  unsent.send({gradient()});
  EXPECT_EQ(unsent.kinds(), "");
  EXPECT_EQ(unsent.status(), "NoData");
  Start scaled("{}", "original");
  scaled.rule.feed(scaled.worker.scalars(Mode::train, {{"loss_scale", 0, 1000, Role::metric}}));
  scaled.send({gradient()}, {{core::SparseStat::p05, 0, 0}, {core::SparseStat::p95, 0, 0.5}});
  EXPECT_EQ(scaled.kinds(), "gradient_range ") << "0.0005 when the loss scale is out";
}

TEST(PoorWeightInitialization, LossesWithoutANewMinimumFireInTheOriginal) {
  Start job("{}", "original");
  for (const double loss : {1.0, 1.0, 2.0, std::nan(""), 1.0, 1.5}) {
    job.loss(loss);
    job.end();
  }
  EXPECT_EQ(job.kinds(), "") << "four finite points since the minimum";
  job.loss(1.0);
  job.end();
  EXPECT_EQ(job.kinds(), "loss_flat ");
  EXPECT_EQ(job.rule.firing()[0].step, 6);
  Start two("{}", "original");
  for (int i = 0; i < 9; ++i) {
    two.loss(1.0);
    two.loss(1.0 - 0.1 * i, "loss2");  // this one falls
    two.end();
  }
  EXPECT_EQ(two.kinds(), "");
}

TEST(PoorWeightInitialization, AllAsksForTheThreeAtOneStep) {
  const std::vector<Statistic> narrow{{core::SparseStat::p05, 2, 0}, {core::SparseStat::p95, 2, 0}};
  const std::vector<core::SummaryRow> rows{input("a", 1), input("b", 11),
                                           row_of("g", Role::gradient, 4, 1, 1)};
  Start job("{combine: all, patience: 2}", "original");
  job.loss(1);
  job.send(rows, narrow);
  job.loss(1);
  job.send(rows, narrow);
  EXPECT_EQ(job.kinds(), "");
  job.loss(1);
  job.send({input("a", 1), input("b", 1), rows[2]}, narrow);  // the layers are alike
  EXPECT_EQ(job.kinds(), "");
  job.loss(1);
  job.send(rows, narrow);
  EXPECT_EQ(job.kinds(), "all ");
}

TEST(PoorWeightInitialization, OnlyTheFirstStepsCount) {
  Start job;
  job.step = 9;
  job.send({input("a", 1)});
  job.send({input("a", 0)});
  job.send({input("a", 0)});
  EXPECT_EQ(job.kinds(), "");
  Start longer("{steps: 11}");
  longer.step = 10;
  longer.send({input("a", 0)});
  EXPECT_EQ(longer.kinds(), "variance ");
}

TEST(PoorWeightInitialization, WhatIsNotFiniteOrTooSmallIsLeftOut) {
  Start job;
  job.send({input("a", 0, 1), input("b", std::nan("")), input("c", HUGE_VAL)});
  EXPECT_EQ(job.kinds(), "");
  EXPECT_EQ(job.status(), "NoData");
}

TEST(PoorWeightInitialization, NamesChooseWhereThereIsNoRole) {
  Start usual;
  usual.send({spread("relu_input", Role::other, 0), spread("gelu_input", Role::other, 0)});
  ASSERT_EQ(usual.kinds(), "variance ");
  EXPECT_EQ(usual.rule.firing()[0].evidence.tensor->name, "relu_input");
  Start own("{activation_inputs_regex: ['gelu_input']}");
  own.send({spread("relu_input", Role::other, 0), input("x", 0)});
  EXPECT_EQ(own.kinds(), "");
  own.send({spread("gelu_input", Role::other, 0)});
  EXPECT_EQ(own.kinds(), "variance ");
}

TEST(PoorWeightInitialization, EvaluationIsNoStartAndWorkersAreApart) {
  RuleHarness rule = RuleHarness::of("poor_weight_initialization");
  FakeWorker one("digits", "two", 1, 2);
  FakeWorker zero("digits", "two", 0, 2);
  rule.feed(zero.summary(Mode::eval, 0, {input("a", 0)}));
  rule.feed(zero.step_end(Mode::eval, 0));
  EXPECT_TRUE(rule.firing().empty());
  rule.feed(zero.summary(Mode::train, 0, {input("a", 0)}));
  rule.feed(one.summary(Mode::train, 0, {input("a", 1)}));
  for (FakeWorker* worker : {&one, &zero}) rule.feed(worker->step_end(Mode::train, 0));
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_EQ(rule.firing()[0].labels.get("worker"), "worker_0");
}

TEST(PoorWeightInitialization, RefusesWhatCannotBe) {
  for (const char* with : {"{threshold: 0.5}", "{distribution_range: -1}", "{steps: 0}",
                           "{combine: some}", "{activation_inputs_regex: ['(']}"}) {
    EXPECT_NE(
        read_rules_text("  - {use: poor_weight_initialization, with: " + std::string(with) + "}")
            .errors,
        "")
        << with;
  }
}

}  // namespace
}  // namespace tocsin::rules
