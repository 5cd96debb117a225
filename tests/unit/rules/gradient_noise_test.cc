#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/rule_harness.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;

/// A gradient of so many elements of deviation `rms`: `size` and `sum` deviations off what is
/// expected of normal numbers, the largest so many deviations.
core::SummaryRow gradient_of(const std::string& name, std::uint64_t count, double rms,
                             double size = 0, double sum = 0, double largest = 3) {
  const auto n = static_cast<double>(count);
  core::SummaryRow row = row_of(name, Role::gradient, count, rms * std::sqrt(n), 0);
  row.sumsq = n * rms * rms;
  row.abs_sum = n * rms * (0.7978845608 + size * std::sqrt((1 - 3 / 3.14159265358979) / n));
  row.sum = sum * rms * std::sqrt(n);
  row.min = -largest * rms;
  row.max = rms;
  return row;
}

struct Backward {
  RuleHarness rule;
  FakeWorker worker;
  std::int64_t step = 0;

  explicit Backward(const std::string& with = "{}")
      : rule(RuleHarness::of("gradient_noise", with)) {
    rule.feed(worker.dictionary({{core::DictionaryType::tensor, "a", Role::gradient},
                                 {core::DictionaryType::tensor, "b", Role::gradient},
                                 {core::DictionaryType::tensor, "c", Role::gradient}}));
  }
  void save(const std::vector<core::SummaryRow>& rows) {
    rule.feed(worker.summary(Mode::train, step, rows));
    rule.feed(worker.step_end(Mode::train, step));
    step += 10;
  }
  /// Whether the same gradients, saved so often, are told.
  bool told(int saves, const std::vector<core::SummaryRow>& rows) {
    for (int i = 0; i < saves; ++i) save(rows);
    return !rule.firing().empty();
  }
};

TEST(GradientNoise, NormalNumbersAreToldAtTheThirdSave) {
  const std::vector<core::SummaryRow> noise{gradient_of("a", 4096, 0.1),
                                            gradient_of("b", 4096, 0.2)};
  EXPECT_FALSE(Backward().told(2, noise));
  Backward job;
  ASSERT_TRUE(job.told(3, noise));
  EXPECT_EQ(job.rule.firing()[0].summary,
            "The gradients are only noise: 24576 elements of 3 saved steps up to train step 20 on "
            "worker_0 look like independent normal numbers.");
  EXPECT_EQ(job.rule.firing()[0].severity, core::Severity::warning);
}

TEST(GradientNoise, SmallModelsTakeMoreSaves) {
  const std::vector<core::SummaryRow> noise{gradient_of("a", 1000, 0.1),
                                            gradient_of("b", 1000, 0.2)};
  EXPECT_FALSE(Backward().told(9, noise)) << "18 000 elements";
  EXPECT_TRUE(Backward().told(10, noise));
  EXPECT_TRUE(Backward("{elements: 6000}").told(3, noise));
}

TEST(GradientNoise, OneTensorThatLooksOtherwiseIsEnoughAgainstIt) {
  const auto told = [](const core::SummaryRow& other) {
    return Backward().told(9, {gradient_of("a", 4096, 0.1), gradient_of("b", 4096, 0.2), other});
  };
  EXPECT_TRUE(told(gradient_of("c", 4096, 0.3)));
  EXPECT_FALSE(told(gradient_of("c", 4096, 0.3, -4.1))) << "some elements matter more";
  EXPECT_FALSE(told(gradient_of("c", 4096, 0.3, 4.1)));
  EXPECT_FALSE(told(gradient_of("c", 4096, 0.3, 0, 4.6))) << "all go one way";
  EXPECT_FALSE(told(gradient_of("c", 4096, 0.3, 0, 0, 6.6))) << "1.6 · 4.08 deviations";
  EXPECT_TRUE(told(gradient_of("c", 4096, 0.3, 0, 0, 6.5)));
  EXPECT_FALSE(told(gradient_of("c", 4096, 0))) << "zeros";
  EXPECT_FALSE(told(gradient_of("c", 4096, std::nan(""))));
  EXPECT_TRUE(told(gradient_of("c", 127, 0.3, 99))) << "too small to tell";
}

// Each may stray so far, but not all of them.
TEST(GradientNoise, AllTogetherTellMoreThanOne) {
  const auto told = [](double size, double other, double sum) {
    return Backward().told(
        3, {gradient_of("a", 4096, 0.1, size, sum), gradient_of("b", 4096, 0.2, other, sum)});
  };
  EXPECT_TRUE(told(1.2, 1.2, 1));
  EXPECT_FALSE(told(1.3, 1.3, 1)) << "1.3 · √6 is more than three";
  EXPECT_FALSE(told(2, -2, 1)) << "squares of 4";
  EXPECT_TRUE(told(1.7, -1.7, 1));
  EXPECT_FALSE(told(0, 0, 2)) << "sums that are all two deviations off";
}

TEST(GradientNoise, WhatIsNoNoiseBeginsTheWindowAnew) {
  const std::vector<core::SummaryRow> noise{gradient_of("a", 4096, 0.1),
                                            gradient_of("b", 4096, 0.2)};
  Backward job;
  job.told(2, noise);
  job.save({noise[0], gradient_of("b", 4096, 0.2, -9)});
  EXPECT_FALSE(job.told(2, noise));
  EXPECT_TRUE(job.told(1, noise));
}

// Differential privacy adds noise of one deviation to all parameters.
TEST(GradientNoise, NoiseOfOneDeviationIsMeant) {
  const auto told = [](double other, const char* with) {
    return Backward(with).told(5, {gradient_of("a", 4096, 0.1), gradient_of("b", 4096, other)});
  };
  EXPECT_FALSE(told(0.1, "{}"));
  EXPECT_FALSE(told(0.1199, "{}"));
  EXPECT_TRUE(told(0.1201, "{}"));
  EXPECT_TRUE(told(0.1001, "{same_deviation: 1}"));
  Backward most;
  const std::vector<core::SummaryRow> alike{gradient_of("a", 4096, 0.1),
                                            gradient_of("b", 4096, 0.1)};
  EXPECT_FALSE(most.told(1, {gradient_of("a", 4096, 0.1), gradient_of("b", 4096, 0.2)}));
  EXPECT_FALSE(most.told(2, alike)) << "two of three";
  Backward few;
  EXPECT_FALSE(few.told(1, alike));
  EXPECT_TRUE(few.told(2, {gradient_of("a", 4096, 0.1), gradient_of("b", 4096, 0.2)}))
      << "one of three";
}

TEST(GradientNoise, OneGradientOrLateStepsAreNotJudged) {
  Backward one;
  EXPECT_FALSE(one.told(20, {gradient_of("a", 4096, 0.1)}));
  one.rule.feed(one.worker.end());
  EXPECT_EQ(one.rule.rule_state(), "NoData");
  const std::vector<core::SummaryRow> noise{gradient_of("a", 4096, 0.1),
                                            gradient_of("b", 4096, 0.2)};
  EXPECT_FALSE(Backward("{steps: 20}").told(9, noise));
  EXPECT_TRUE(Backward("{steps: 21}").told(3, noise));
}

TEST(GradientNoise, RefusesWhatCannotBe) {
  for (const char* with : {"{steps: 0}", "{elements: 0}", "{same_deviation: 0.5}"}) {
    EXPECT_NE(read_rules_text("  - {use: gradient_noise, with: " + std::string(with) + "}").errors,
              "")
        << with;
  }
}

}  // namespace
}  // namespace tocsin::rules
