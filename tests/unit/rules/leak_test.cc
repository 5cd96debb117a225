#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "rules/builtin/data/count_bounds.h"
#include "rules/builtin/data/leak_rows.h"
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
            "Column price alone explains 99.8 % of the variance of the labels in 3000 training "
            "rows (the next best, area, explains 61.2 %; with labels shifted by one row: 0.1 %).");
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
  EXPECT_EQ(
      some[0].summary,
      "23 of 1000 rows of held (2.3 %) also occur among 4000 training rows, with the same label.");
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

// ------------------------------------------------------------------------------------ networks

LedgerNumbers network(double fit, double next, double equal = 0) {
  return {{"ledger/data/train/read", 512},
          {"ledger/data/train/batches", 16},
          {"ledger/data/train/column_fit/4", fit},
          {"ledger/data/train/shifted_fit/4", 0.001},
          {"ledger/data/train/column_fit/7", next},
          {"ledger/data/train/shifted_fit/7", 0.001},
          {"ledger/data/train/column_equal/4", equal}};
}

TEST(Leak, AnInputColumnOfANetworkIsNamedByItsNumber) {
  const auto issues = LeakJob().tell(network(0.998, 0.612)).issues();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].summary,
            "Input column 4 alone explains 99.8 % of the variance of the labels in 512 training "
            "rows (the next best, 7, explains 61.2 %; with labels shifted by one row: 0.1 %).");
}

TEST(Leak, InShuffledBatchesASeriesShowsInSeveralColumns) {
  EXPECT_TRUE(LeakJob().tell(network(0.998, 0.99)).issues().empty());
  EXPECT_EQ(LeakJob().tell(network(0.998, 0.97)).issues().size(), 1U);
  EXPECT_EQ(LeakJob().tell(network(1, 1)).issues().size(), 1U) << "the target, twice";
  EXPECT_EQ(LeakJob().tell(network(0.998, 0.99, 0.995)).issues().size(), 1U) << "a copy";
}

RowCounts evaluation(double seen, double early_seen, double repeats, double train_repeats,
                     double look = 1) {
  return {.compared = 1000,
          .seen = seen,
          .train_compared = 20000,
          .train_repeats = train_repeats,
          .again = true,
          .train_distinct = 10000,
          .early = 1000,
          .early_seen = early_seen,
          .repeats = repeats,
          .look = look};
}

TEST(Leak, SamplesOfAnEvaluationThatWereTrainedOn) {
  const auto answer = [](const RowCounts& data) { return seen_rows(data, 0.01, 0.0005).answer; };
  EXPECT_EQ(answer(evaluation(10, 0, 0, 0)), SeenRows::fine);
  EXPECT_EQ(answer(evaluation(100, 0, 0, 0)), SeenRows::seen) << "each training sample came once";
  EXPECT_EQ(answer(evaluation(100, 9, 0, 20000)), SeenRows::fine) << "they came again";
  EXPECT_EQ(answer(evaluation(400, 40, 0, 20000)), SeenRows::seen) << "too many of the first";
  EXPECT_EQ(answer(evaluation(400, 40, 40, 20000)), SeenRows::fine)
      << "as the evaluation repeats itself";
  EXPECT_EQ(answer(evaluation(1000, 1000, 995, 20000)), SeenRows::not_applicable) << "all alike";
  EXPECT_FALSE(seen_rows(evaluation(1000, 100, 0, 0), 0.01, 0.0005).many)
      << "all of it: perhaps meant";
  EXPECT_TRUE(seen_rows(evaluation(500, 50, 0, 0), 0.01, 0.0005).many);
}

TEST(Leak, LaterLooksAskForMore) {
  int first = 0;
  int fifth = 0;
  while (seen_rows(evaluation(first, 0, 0, 0, 1), 0.01, 0.0005).answer != SeenRows::seen) ++first;
  while (seen_rows(evaluation(fifth, 0, 0, 0, 5), 0.01, 0.0005).answer != SeenRows::seen) ++fifth;
  EXPECT_GT(fifth, first);
}

// Null streams: samples of a population that repeats itself, trained on in passes of which each `thin`-th batch is looked at. Training and
// evaluation are draws of it, so nothing may be found beyond `overlap`.
TEST(Leak, SamplesThatRepeatThemselvesByNatureAreToldInFewerThanAlpha) {
  std::mt19937_64 random(11);  // NOLINT: the same on every machine
  int alarms = 0;
  int found = 0;
  constexpr int kRuns = 48;
  for (const int thin : {1, 10, 100}) {
    for (const std::uint64_t values : {500U, 5000U, 50000U}) {
      for (int run = 0; run < kRuns; ++run) {
        const bool leaks = run >= kRuns / 2;
        std::vector<std::uint64_t> train(4000);
        std::vector<std::uint64_t> held(800);
        for (auto& one : train) one = random() % values;
        for (auto& one : held) one = random() % values;
        if (leaks) std::copy_n(train.begin(), held.size(), held.begin());
        std::map<std::uint64_t, int> counts;
        std::vector<std::uint64_t> order;
        bool told = false;
        for (int pass = 0; pass < 4; ++pass) {
          std::shuffle(train.begin(), train.end(), random);
          for (std::size_t at = 0; at < train.size(); ++at) {
            if (at / 20 % static_cast<std::size_t>(thin) != 0) continue;
            if (counts[train[at]]++ == 0) order.push_back(train[at]);
          }
          if (pass != 0 && pass != 1 && pass != 3) continue;
          const std::set<std::uint64_t> kinds(held.begin(), held.end());
          const std::size_t early = std::min(kinds.size(), order.size());
          const std::set<std::uint64_t> first(order.begin(),
                                              order.begin() + static_cast<std::ptrdiff_t>(early));
          std::map<std::uint64_t, int> again;
          for (const auto one : held) ++again[one];
          RowCounts f;
          f.again = true;
          f.look = pass == 0 ? 1 : pass == 1 ? 2 : 3;
          f.compared = static_cast<double>(held.size());
          f.early = static_cast<double>(early);
          f.train_distinct = static_cast<double>(order.size());
          for (const auto& [value, times] : counts) {
            f.train_compared += times;
            if (times > 1) f.train_repeats += times;
          }
          for (const auto one : held) {
            f.seen += counts.contains(one) ? 1 : 0;
            f.early_seen += first.contains(one) ? 1 : 0;
            f.repeats += again[one] > 1 ? 1 : 0;
          }
          told = told || seen_rows(f, 0.01, 0.0005).answer == SeenRows::seen;
        }
        (leaks ? found : alarms) += told ? 1 : 0;
      }
    }
  }
  EXPECT_LE(alarms, 1) << "of " << kRuns * 9 / 2;
  EXPECT_GE(found, kRuns / 2) << "where values are many and each batch is looked at";
}

TEST(Leak, TrainingThatIsSolvedBeforeASampleCameTwice) {
  const auto job = [](double epochs, double loss) {
    LeakJob out;
    out.tell({{"ledger/plan/updates", 1000}, {"ledger/plan/epochs", epochs}});
    for (int i = 0; i < 9; ++i) {
      out.tell({{"ledger/cross_entropy/samples", 100},
                {"ledger/cross_entropy/loss", loss},
                {"ledger/cross_entropy/trivial", 230}});
    }
    return out.issues();
  };
  ASSERT_EQ(job(1, 1).size(), 1U);
  EXPECT_EQ(job(1, 1)[0].severity, Severity::info);
  EXPECT_TRUE(job(1, 3).empty());
  EXPECT_TRUE(job(1000, 1).empty()) << "one update is a pass: it is memorised";
}

TEST(Leak, TheRunCardHasWhatWasCompared) {
  LeakJob job;
  job.tell(network(0.5, 0.1))
      .tell({{"ledger/data/evaluation/compared", 400},
             {"ledger/data/evaluation/seen", 3},
             {"ledger/data/evaluation/train_compared", 3000},
             {"ledger/data/evaluation/train_distinct", 3000},
             {"ledger/data/evaluation/early", 400}});
  job.issues();
  const std::string card = summed_up(job.rule);
  EXPECT_NE(card.find("largest_fit"), std::string::npos) << card;
  EXPECT_NE(card.find("training_rows_that_came_again"), std::string::npos) << card;
}

}  // namespace
}  // namespace tocsin::rules
