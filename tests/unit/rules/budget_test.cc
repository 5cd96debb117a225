#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "tests/unit/rules/rule_bench.h"

namespace tocsin::rules {
namespace {

using core::Mode;
using core::Role;

/// A training whose rate is sent when it changes and at each doubled update, as the hook does.
struct BudgetJob {
  SeriesBench rule;
  std::map<std::string, double> plan;
  explicit BudgetJob(std::map<std::string, double> fields = {}, const std::string& with = "{}")
      : rule("budget", with), plan(std::move(fields)) {}
  std::string log(std::int64_t step, double rate) {
    std::vector<BenchValue> values{{"learning_rate", rate, Role::other}};
    for (const auto& [field, value] : plan) {
      values.push_back({"ledger/plan/" + field, value, Role::ledger});
    }
    plan.clear();
    return rule.step(Mode::train, step, values);
  }
  /// "kind at step" of the first hit; empty: there is none.
  std::string run(std::int64_t length, const std::function<double(double)>& rate) {
    double before = -1;
    std::string out;
    for (std::int64_t step = 0; step < length; ++step) {
      const double now = rate(static_cast<double>(step));
      if (now == before && (step & (step - 1)) != 0) continue;
      before = now;
      const std::string answer = log(step, now);
      if (out.empty() && answer.find("hit") != std::string::npos) {
        out = answer.substr(answer.find("hit") + 4) + " " + std::to_string(step);
      }
    }
    return out;
  }
  [[nodiscard]] const Finding& found() const { return rule.told.front().finding; }
};

double line(double at, double length) { return std::max(0.0, 1 - at / length); }

TEST(Budget, TellsAScheduleOfEpochsThatStepsAtEachUpdate) {
  BudgetJob job;
  EXPECT_EQ(job.run(345, [](double at) { return std::min(1.0, at / 2) * line(at, 15); }),
            "ends_early 32")
      << "above 1 % for the 15 updates 0 to 14, so it is certain from 30 on";
  EXPECT_EQ(job.found().severity, core::Severity::error);
  EXPECT_EQ(job.found().first_step, 15);
  EXPECT_EQ(job.found().summary,
            "learning_rate is 0 since step 15, but training continues. The 17 updates since then "
            "(until step 32) are worth 0 updates at the largest rate (0.867); the 15 updates "
            "before are worth 7.54.");
}

TEST(Budget, ARateAboveZeroIsLowTooBelowOneInAHundred) {
  const auto floor = [](double at) { return std::max(0.009, line(at, 50)); };
  EXPECT_EQ(BudgetJob().run(200, floor), "ends_early 128") << "below from 50 on";
  EXPECT_EQ(BudgetJob().run(200, [](double at) { return std::max(0.01, line(at, 50)); }), "");
  EXPECT_EQ(BudgetJob({}, "{share: 0.001}").run(200, floor), "");
  EXPECT_EQ(BudgetJob().run(4000, [](double at) { return std::pow(0.1, std::floor(at / 100)); }),
            "ends_early 600")
      << "0.1 · 0.1 is one in a hundred, and not below it: 300 updates above";
}

TEST(Budget, SchedulesThatFitAreSilentWithAndWithoutAPlan) {
  constexpr double kLength = 400;
  const std::function<double(double)> all[] = {
      [](double at) { return line(at, kLength); },
      [](double at) { return 0.5 + 0.5 * std::cos(M_PI * at / kLength); },
      [](double at) { return at < 40 ? at / 40 : 1; },
      [](double at) { return at < 120 ? 0.04 + at / 125 : std::pow(line(at - 120, 280), 2); },
      [](double at) { return 0.5 + 0.5 * std::cos(M_PI * std::fmod(at, 100) / 100); },
      [](double at) { return 1 / std::sqrt(1 + at); },
      [](double at) { return at < 200   ? 1
                             : at < 300 ? 0.1
                                        : 0.01; },
      [](double) { return 0.001; },
  };
  for (const auto& rate : all) {
    EXPECT_EQ(BudgetJob().run(400, rate), "");
    EXPECT_EQ(
        BudgetJob(
            {{"updates", 400}, {"schedule", 400}, {"length", 400}, {"stride", 1}, {"lowest", 0}})
            .run(400, rate),
        "");
  }
}

TEST(Budget, RestartsAndRatesThatRiseAgainBeginAnew) {
  EXPECT_EQ(BudgetJob().run(900, [](double at) { return std::fmod(at, 300) < 160 ? 1 : 0; }), "");
  BudgetJob job;
  job.log(0, 1);
  EXPECT_EQ(job.log(10, 0), "learning_rate: ok");
  EXPECT_EQ(job.log(19, 0), "learning_rate: ok");
  EXPECT_EQ(job.log(20, 0), "learning_rate: hit ends_early");
  EXPECT_EQ(job.log(21, 0.5), "learning_rate: ok");
  EXPECT_EQ(job.log(30, 0), "learning_rate: ok");
  EXPECT_EQ(job.log(48, 0), "learning_rate: ok") << "19 updates above, 18 below";
  EXPECT_EQ(job.log(49, 0), "learning_rate: hit ends_early");
}

TEST(Budget, AFallInOneUpdateIsAnotherStageUnlessItIsToZero) {
  EXPECT_EQ(BudgetJob().run(400, [](double at) { return at < 100 ? 0.01 : 1e-5; }), "");
  EXPECT_EQ(BudgetJob().run(400, [](double at) { return at < 100 ? 0.01 : 0; }), "ends_early 256");
  // A search for a rate: it grows to 1, and the training begins at 0.001.
  EXPECT_EQ(
      BudgetJob().run(900, [](double at) { return at < 100 ? std::pow(10, at / 20 - 5) : 0.001; }),
      "");
}

TEST(Budget, ARateThatFollowsAMetricHasNoEnd) {
  const auto plateaus = [](double at) { return std::pow(0.1, std::floor(at / 300)); };
  EXPECT_EQ(BudgetJob({{"follows_metric", 1}}).run(9000, plateaus), "");
  EXPECT_EQ(BudgetJob({{"follows_metric", 0}}).run(9000, plateaus), "ends_early 1800");
}

TEST(Budget, ADecayThatLeavesNoUpdatesOfWorthIsToldWhenItIsSeen) {
  const auto halves = [](double at) { return 0.01 * std::pow(0.5, std::floor(at / 10)); };
  BudgetJob job;
  EXPECT_EQ(job.run(300, halves), "ends_early 40")
      << "as learning_rate_decay, which has the figures";
  EXPECT_EQ(job.found().severity, core::Severity::error);
  EXPECT_NEAR(job.found().observed.value, 19.6517, 1e-4);
  EXPECT_EQ(
      job.found().summary,
      "learning_rate fell from 0.01 to 0.000625 within 40 updates (by step 40). At this pace, the "
      "whole training is worth 19.7 updates at the largest rate (expected: at least 50).");
  EXPECT_EQ(BudgetJob({}, "{worth: 19}").run(120, halves), "");
  EXPECT_EQ(BudgetJob().run(3000, [](double at) { return std::pow(0.5, std::floor(at / 100)); }),
            "ends_early 1400")
      << "worth 200; below 1 % from 700 on";
}

TEST(Budget, ATrainingThatStopsEarlyMayEndWithItsSchedule) {
  BudgetJob job({{"updates", 1000}, {"schedule", 100}, {"lowest", 0}, {"early_stopping", 1}});
  EXPECT_EQ(job.log(0, 0.1), "learning_rate: ok");
  BudgetJob longer({{"updates", 1000}, {"schedule", 2000}, {"early_stopping", 1}});
  EXPECT_EQ(longer.log(0, 0.1), "learning_rate: hit unfinished");
}

std::string told_at_once(std::map<std::string, double> plan, const std::string& with = "{}") {
  BudgetJob job(std::move(plan), with);
  std::string answer = job.log(0, 0.1);
  if (!job.rule.told.empty()) answer += "; " + job.found().summary;
  return answer.substr(answer.find(": ") + 2);
}

TEST(Budget, LengthsThatDoNotFitAreToldAtTheFirstUpdate) {
  EXPECT_EQ(told_at_once({{"updates", 1000}, {"schedule", 700}, {"lowest", 0}}),
            "hit ends_early; The schedule of learning_rate ends after 700 updates, but 1000 are "
            "planned: 30 % of the training comes after its end.");
  EXPECT_EQ(told_at_once({{"updates", 1000}, {"schedule", 2000}, {"lowest", 0.1}}),
            "hit unfinished; The schedule of learning_rate takes 2000 updates, but 1000 are "
            "planned: it completes 50 %.");
  EXPECT_EQ(told_at_once({{"updates", 1000}, {"schedule", 800}, {"lowest", 0}}), "ok");
  EXPECT_EQ(told_at_once({{"updates", 1000}, {"schedule", 1250}, {"lowest", 0}}), "ok");
  EXPECT_EQ(told_at_once({{"updates", 1000}, {"schedule", 100}, {"lowest", 0.01}}), "ok")
      << "it ends at a rate that learns: a warm-up, or a decay to a tenth";
  EXPECT_EQ(told_at_once({{"updates", 1000}, {"schedule", 100}}), "ok") << "nobody knows its end";
  EXPECT_EQ(told_at_once({{"schedule", 100}, {"lowest", 0}}), "ok") << "no plan";
  EXPECT_EQ(told_at_once({{"updates", 1000}, {"lowest", 0}}), "ok") << "no schedule with an end";
  EXPECT_EQ(told_at_once({{"updates", 1000}, {"schedule", 800}, {"lowest", 0}}, "{early: 0.9}")
                .substr(0, 14),
            "hit ends_early");
}

TEST(Budget, OneStepPerEpochAndALengthInUpdatesOrTheReverse) {
  // 15 epochs of 23 updates.
  EXPECT_EQ(told_at_once({{"updates", 345},
                          {"epochs", 15},
                          {"length", 345},
                          {"stride", 23},
                          {"schedule", 345 * 23},
                          {"lowest", 0}})
                .substr(0, 13),
            "hit per_epoch");
  EXPECT_EQ(told_at_once({{"updates", 345},
                          {"epochs", 15},
                          {"length", 15},
                          {"stride", 1},
                          {"schedule", 15},
                          {"lowest", 0}})
                .substr(0, 13),
            "hit per_epoch");
  EXPECT_EQ(told_at_once({{"updates", 345},
                          {"epochs", 15},
                          {"length", 15},
                          {"stride", 23},
                          {"schedule", 345},
                          {"lowest", 0}}),
            "ok");
  EXPECT_EQ(told_at_once({{"updates", 345},
                          {"epochs", 15},
                          {"length", 100},
                          {"stride", 23},
                          {"schedule", 2300},
                          {"lowest", 0}})
                .substr(0, 14),
            "hit unfinished")
      << "a hundred epochs of a schedule, for fifteen: no unit is mistaken";
  EXPECT_EQ(told_at_once({{"updates", 345},
                          {"epochs", 15},
                          {"length", 100},
                          {"stride", 1},
                          {"schedule", 100},
                          {"lowest", 0}})
                .substr(0, 14),
            "hit ends_early");
}

TEST(Budget, BatchesForUpdates) {
  EXPECT_EQ(told_at_once({{"updates", 100}, {"accumulation", 4}, {"schedule", 400}, {"lowest", 0}})
                .substr(0, 13),
            "hit per_batch");
  EXPECT_EQ(told_at_once({{"updates", 100}, {"accumulation", 4}, {"schedule", 25}, {"lowest", 0}})
                .substr(0, 13),
            "hit per_batch");
  EXPECT_EQ(told_at_once({{"updates", 100}, {"accumulation", 4}, {"schedule", 200}, {"lowest", 0}})
                .substr(0, 14),
            "hit unfinished");
  EXPECT_EQ(told_at_once({{"updates", 100}, {"accumulation", 1}, {"schedule", 400}, {"lowest", 0}})
                .substr(0, 14),
            "hit unfinished");
}

TEST(Budget, ARateThatRisesUntilTheLastUpdate) {
  EXPECT_EQ(BudgetJob({{"updates", 200}}).run(200, [](double at) { return at / 1000; }),
            "warmup_only 199");
  EXPECT_EQ(BudgetJob({{"updates", 200}, {"stride", 20}})
                .run(200, [](double at) { return 1 + std::floor(at / 20); }),
            "warmup_only 180");
  EXPECT_EQ(BudgetJob({{"updates", 200}}).run(200, [](double at) { return std::min(at, 100.0); }),
            "");
  EXPECT_EQ(BudgetJob().run(200, [](double at) { return at / 1000; }), "") << "no plan";
}

std::string rounds(std::map<std::string, double> plan) {
  SeriesBench rule("budget", "{}");
  std::vector<BenchValue> values;
  for (const auto& [field, value] : plan)
    values.push_back({"ledger/plan/" + field, value, Role::ledger});
  std::string answer = rule.step(Mode::train, 0, values);
  if (!rule.told.empty()) answer += "; " + rule.told.front().finding.summary;
  return answer;
}

TEST(Budget, BoostingThatCannotComeHalfOfTheWay) {
  EXPECT_EQ(rounds({{"rounds", 100}, {"shrinkage", 0.002}}),
            "ledger/plan/rounds: hit too_small; 100 rounds at a learning rate of 0.002 cover at "
            "most 18.1 % of the way from a constant to the best fit (expected: at least 50 %).");
  EXPECT_EQ(rounds({{"rounds", 40}, {"shrinkage", 0.05}}), "ledger/plan/rounds: ok") << "0.87";
  EXPECT_EQ(rounds({{"rounds", 1}, {"shrinkage", 1}}), "ledger/plan/rounds: ok");
  EXPECT_EQ(rounds({{"rounds", 100}, {"shrinkage", 0.002}, {"early_stopping", 1}}),
            "ledger/plan/rounds: ok");
  EXPECT_EQ(rounds({{"rounds", 10001}, {"shrinkage", 1e-5}}), "ledger/plan/rounds: ok");
  EXPECT_EQ(rounds({{"rounds", 100}}), "ledger/plan/rounds: insufficient_data");
}

TEST(Budget, OneOfSeveralRatesIsHeldAgainstThePlan) {
  SeriesBench rule("budget", "{}");
  EXPECT_EQ(rule.step(Mode::train, 0,
                      {{"learning_rate", 1, Role::other},
                       {"critic.learning_rate", 1, Role::other},
                       {"ledger/plan/updates", 100, Role::ledger},
                       {"ledger/plan/schedule", 900, Role::ledger}}),
            "critic.learning_rate: hit unfinished; learning_rate: ok");
}

TEST(Budget, ValuesThatAreNoRatesSayNothing) {
  BudgetJob job;
  EXPECT_EQ(job.log(0, std::numeric_limits<double>::quiet_NaN()),
            "learning_rate: insufficient_data");
  EXPECT_EQ(job.log(1, -1), "learning_rate: insufficient_data");
  EXPECT_EQ(job.log(2, 0), "learning_rate: ok");
  EXPECT_EQ(job.rule.step(Mode::eval, 3, {{"learning_rate", 1, Role::other}}), "");
}

}  // namespace
}  // namespace tocsin::rules
