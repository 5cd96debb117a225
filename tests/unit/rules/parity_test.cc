#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/support/rule_harness.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;

/// What the rule says of one set, told in one step.
std::vector<core::Issue> of_set(const std::string& set,
                                const std::vector<std::pair<std::string, double>>& fields,
                                const std::string& with = "{}") {
  RuleHarness rule = RuleHarness::of("parity", with);
  FakeWorker worker;
  std::vector<Scalar> scalars;
  std::vector<Entry> names;
  for (const auto& [field, value] : fields) {
    const std::string name = "ledger/data/" + set + "/" + field;
    scalars.push_back({name, 0, value, Role::ledger});
    names.push_back({core::DictionaryType::scalar, name, Role::ledger});
  }
  rule.feed(worker.dictionary(names));
  rule.feed(worker.scalars(Mode::train, scalars));
  rule.feed(worker.step_end(Mode::train, 0));
  rule.feed(worker.end());
  return rule.firing();
}

std::vector<core::Issue> of_labels(double distance, double drift, double n, double m,
                                   double classes = 0, const std::string& with = "{}") {
  return of_set("held",
                {{"target_distance", distance},
                 {"target_drift", drift},
                 {"target_train", n},
                 {"target_read", m},
                 {"target_classes", classes}},
                with);
}

TEST(Parity, LabelsOfAnotherWorldAreToldWithTheirDistance) {
  const auto issues = of_labels(0.197, 0.03, 2000, 500);
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].summary,
            "The labels of held are distributed differently than in training: 19.7 % lie on the "
            "other side of one value (two parts of training: 3 %; 2000 and 500 labels).");
  EXPECT_TRUE(of_labels(0.045, 0.03, 2000, 500).empty());
}

TEST(Parity, WhatOrderInTimeMakesIsAllowedTwice) {
  EXPECT_TRUE(of_labels(0.5, 0.4, 2000, 500).empty());
  EXPECT_EQ(of_labels(1, 0.2, 2000, 500).size(), 1U) << "more than that";
}

TEST(Parity, SmallSetsMustDifferMuch) {
  EXPECT_TRUE(of_labels(0.27, 0.1, 400, 100).empty());
  EXPECT_EQ(of_labels(0.3, 0.1, 400, 100).size(), 1U);
  EXPECT_TRUE(of_labels(1, 0, 30, 0).empty());
}

TEST(Parity, ManyClassesNeedManyLabels) {
  EXPECT_EQ(of_labels(0.5, 0, 2000, 500, 100).size(), 1U) << "half of 100 classes are missing";
  EXPECT_TRUE(of_labels(0.25, 0, 500, 200, 100).empty());
}

TEST(Parity, TheMarginIsTheUsers) {
  EXPECT_TRUE(of_labels(0.3, 0, 2000, 500, 0, "{margin: 0.3}").empty());
  EXPECT_NE(read_rules_text("  - {use: parity, with: {margin: 2}}").errors, "");
}

TEST(Parity, ColumnsAreNamedAndCounted) {
  const auto issues = of_set("held", {{"columns", 32},
                                      {"column_distance/income", 0.612},
                                      {"column_drift/income", 0.02},
                                      {"column_train", 2048},
                                      {"column_read", 500}});
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].summary,
            "Column income of held is distributed differently than in training: 61.2 % of its "
            "elements lie on the other side of one value (2048 and 500 elements).");
}

TEST(Parity, EarlyStoppingByTheTrainingSetIsCertain) {
  EXPECT_EQ(of_set("train", {{"stops", 1}}).size(), 1U);
  EXPECT_EQ(of_set("copy", {{"stops", 1}, {"same", 1}}).size(), 1U);
  EXPECT_TRUE(of_set("held", {{"stops", 1}, {"target_distance", 0}}).empty());
}

// Null streams of labels: sets of one distribution (uniform, so any without ties), by the bound that the rule uses.
TEST(Parity, SetsOfOneWorldAreToldInFewerThanAlpha) {
  std::mt19937_64 random(11);  // NOLINT: the same on every machine
  std::uniform_real_distribution<double> draw;
  int alarms = 0;
  for (int i = 0; i < 10000; ++i) {
    const std::size_t n = 40 + random() % 200;
    const std::size_t m = 30 + random() % 100;
    std::vector<std::pair<double, bool>> both;
    for (std::size_t k = 0; k < n + m; ++k) both.emplace_back(draw(random), k < n);
    std::sort(both.begin(), both.end());
    double gap = 0;
    double most = 0;
    for (const auto& [value, first] : both) {
      gap += first ? 1.0 / static_cast<double>(n) : -1.0 / static_cast<double>(m);
      most = std::max(most, std::fabs(gap));
    }
    // Without any margin: the hardest case.
    const double chance =
        1 - 2 * most * most * static_cast<double>(n * m) / static_cast<double>(n + m);
    if (chance <= std::log(0.0005)) ++alarms;
  }
  EXPECT_LE(alarms, 5 + 3 * std::sqrt(5));
}

}  // namespace
}  // namespace tocsin::rules
