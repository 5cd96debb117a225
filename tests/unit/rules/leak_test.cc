#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "rules/builtin/count_bounds.h"
#include "tests/support/rule_harness.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;
using core::Severity;

using LedgerNumbers = std::vector<std::pair<std::string, double>>;

/// Tells the ledger of a training, step by step.
struct LeakJob {
  RuleHarness rule;
  FakeWorker worker;
  std::int64_t step = 0;

  explicit LeakJob(const std::string& with = "{}") : rule(RuleHarness::of("leak", with)) {}
  LeakJob& tell(const LedgerNumbers& numbers, Mode mode = Mode::train) {
    std::vector<Scalar> scalars;
    std::vector<Entry> names;
    for (const auto& [name, value] : numbers) {
      const Role role = name.starts_with("ledger/") ? Role::ledger : Role::importance;
      scalars.push_back({name, step, value, role});
      names.push_back({core::DictionaryType::scalar, name, role});
    }
    rule.feed(worker.dictionary(names));
    rule.feed(worker.scalars(mode, scalars));
    rule.feed(worker.step_end(mode, step++));
    return *this;
  }
  LeakJob& column(double fit, double shifted, double equal = 0, double rows = 3000) {
    return tell({{"ledger/data/train/read", rows},
                 {"ledger/data/train/column_fit/price", fit},
                 {"ledger/data/train/shifted_fit/price", shifted},
                 {"ledger/data/train/column_equal/price", equal},
                 {"ledger/data/train/column_fit/area", 0.612}});
  }
  LeakJob& overlap(double seen, double rows, double repeats = 0) {
    return tell({{"ledger/data/held/compared", rows},
                 {"ledger/data/held/seen", seen},
                 {"ledger/data/held/train_compared", 4000},
                 {"ledger/data/held/train_repeats", repeats}});
  }
  std::vector<core::Issue> issues() {
    rule.feed(worker.end());
    return rule.firing();
  }
};

TEST(Leak, AColumnThatLeavesNothingToLearnIsNamedWithTheNext) {
  const auto issues = LeakJob().column(0.998, 0.001).issues();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].severity, Severity::warning);
  EXPECT_EQ(issues[0].summary,
            "Column price alone explains 99.8 % of the labels' variance of 3000 training rows (the "
            "next, area, 61.2 %; with the labels shifted by a row 0.1 %).");
}

TEST(Leak, AStrongHonestColumnIsInfoAndAnOrdinaryOneSilent) {
  const auto issues = LeakJob().column(0.978, 0.001).issues();  // t + noise of 0.15 deviations
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].severity, Severity::info);
  EXPECT_TRUE(LeakJob().column(0.94, 0.001).issues().empty()) << "petal length of iris";
}

TEST(Leak, WhatNeighboursTellAsWellIsOrderInTimeUnlessItIsACopy) {
  EXPECT_TRUE(LeakJob().column(0.999, 0.995).issues().empty());
  EXPECT_TRUE(LeakJob().column(1, 1, 0.98).issues().empty()) << "a trend";
  const auto copy = LeakJob().column(0.999, 0.999, 0.995).issues();
  ASSERT_EQ(copy.size(), 1U);
  EXPECT_NE(copy[0].summary.find("bit for bit"), std::string::npos);
}

TEST(Leak, FewRowsSayNothing) {
  LeakJob job;
  EXPECT_TRUE(job.column(1, 0, 1, 199).issues().empty());
  EXPECT_EQ(job.rule.rule_state(), "NoData");
}

TEST(Leak, RowsOfTheTrainingSetByHowSureTheyAre) {
  EXPECT_TRUE(LeakJob().overlap(22, 1000).issues().empty());
  const auto some = LeakJob().overlap(23, 1000).issues();
  ASSERT_EQ(some.size(), 1U);
  EXPECT_EQ(some[0].severity, Severity::warning);
  EXPECT_EQ(some[0].summary,
            "23 of 1000 rows of held (2.3 %) are also among 4000 training rows, label and all.");
  EXPECT_EQ(LeakJob().overlap(300, 1000).issues().at(0).severity, Severity::error);
  EXPECT_TRUE(LeakJob().overlap(140, 1000, 600).issues().empty()) << "the table repeats itself";
  EXPECT_EQ(LeakJob().overlap(300, 1000, 600).issues().size(), 1U) << "more than that";
  EXPECT_TRUE(LeakJob().overlap(1, 3).issues().empty()) << "tiny sets";
}

TEST(Leak, OneColumnIsToldAfterThreeRoundsAndOnlyWhereNoneIsNamed) {
  const LedgerNumbers alone{{"feature_importance/total_gain/a", 0.99},
                            {"feature_importance/total_gain/b", 0.001}};
  EXPECT_TRUE(LeakJob().tell(alone).tell(alone).issues().empty());
  const auto issues = LeakJob().tell(alone).tell(alone).tell(alone).issues();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].severity, Severity::info);
  EXPECT_EQ(LeakJob().column(1, 0).tell(alone).tell(alone).tell(alone).issues().size(), 1U)
      << "of the column alone";
}

TEST(Leak, EachKindOfACallByItself) {
  LeakJob job;
  job.tell({{"ledger/plan/updates", 1000},
            {"ledger/cross_entropy/input_places", 500},
            {"ledger/cross_entropy/same_as_input", 500},
            {"ledger/cross_entropy/same_by_chance", 20},
            {"ledger/cross_entropy/labels", 9}});
  job.tell({{"ledger/cross_entropy/samples", 500},
            {"ledger/cross_entropy/loss", 1},
            {"ledger/cross_entropy/trivial", 1000}},
           Mode::eval);
  const auto issues = job.issues();
  ASSERT_EQ(issues.size(), 2U);
  EXPECT_EQ(issues[0].severity, Severity::warning);
  EXPECT_EQ(issues[1].severity, Severity::info);
}

TEST(Leak, BoundsOfCounts) {
  EXPECT_NEAR(at_least_by_chance(3, 4, 0.5), 5.0 / 16, 1e-12);
  EXPECT_NEAR(at_least_by_chance(4, 4, 0.1), 1e-4, 1e-16);
  EXPECT_EQ(at_least_by_chance(1, 100, 0.01), 1) << "no more than expected: no evidence";
  EXPECT_NEAR(share_at_most(0, 1000, 0.001), 1 - std::pow(0.001, 0.001), 1e-9);
  EXPECT_GT(share_at_most(10, 1000, 0.001), 0.02);
}

// Null streams: evaluation rows repeat as training rows repeat, and up to `overlap` more of them are known.
TEST(Leak, OverlapOfHonestSetsIsToldInFewerThanAlpha) {
  std::mt19937_64 random(4);  // NOLINT: the same on every machine
  int alarms = 0;
  constexpr int kSets = 10000;
  for (int i = 0; i < kSets; ++i) {
    const int rows = 50 + static_cast<int>(random() % 500);
    const double natural = (i % 4) * 0.05;
    std::binomial_distribution<int> train(4000, natural);
    std::binomial_distribution<int> held(rows, natural + 0.01);
    const double limit = 0.01 + (natural > 0 ? share_at_most(train(random), 4000, 0.0005) : 0);
    if (at_least_by_chance(held(random), rows, limit) <= 0.0005) ++alarms;
  }
  EXPECT_LE(alarms, 10 + 3 * std::sqrt(10));
}

}  // namespace
}  // namespace tocsin::rules
