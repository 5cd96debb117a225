#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "tests/unit/rules/rule_bench.h"

namespace tocsin::rules {
namespace {

using core::Mode;
using core::Role;

/// A training of `length` updates whose rate is sent when it changes, as the hook does.
struct RateJob {
  SeriesBench rule;
  explicit RateJob(const std::string& with = "{}") : rule("learning_rate_decay", with) {}
  std::string log(std::int64_t step, double rate, const std::string& name = "learning_rate") {
    return rule.step(Mode::train, step, {{name, rate, Role::other}});
  }
  /// The step of the first hit; −1: there is none.
  std::int64_t run(std::int64_t length, const std::function<double(double)>& rate) {
    double before = -1;
    std::int64_t hit = -1;
    for (std::int64_t step = 0; step < length; ++step) {
      const double now = rate(static_cast<double>(step));
      if (now == before) continue;
      before = now;
      if (log(step, now) == "learning_rate: hit" && hit < 0) hit = step;
    }
    return hit;
  }
};

TEST(LearningRateDecay, TellsASchedulerOfEpochsThatStepsAtEachBatch) {
  RateJob job;
  EXPECT_EQ(job.run(300, [](double at) { return 0.01 * std::pow(0.5, std::floor(at / 10)); }), 40);
  const Finding& found = job.rule.told.front().finding;
  // 10 · (1 + 1/2 + 1/4 + 1/8) = 18.75 until then; of what comes, 1/16 · 20 / ln 4 = 0.9017
  EXPECT_NEAR(found.observed.value, 19.6517, 1e-4);
  EXPECT_EQ(found.first_step, 0);
  EXPECT_EQ(
      found.summary,
      "learning_rate fell from 0.01 to 0.000625 within 40 updates (by step 40). At this pace, the "
      "whole training is worth 19.7 updates at the largest rate (expected: at least 50).");
}

TEST(LearningRateDecay, TellsTheExponentialAndTheStepsOfImageNet) {
  EXPECT_EQ(RateJob().run(300, [](double at) { return std::pow(0.9, at); }), 27);
  EXPECT_EQ(RateJob().run(300, [](double at) { return std::pow(0.1, std::floor(at / 30)); }), 60);
}

TEST(LearningRateDecay, LeavesTheSameSchedulesAloneWhenTheyStepPerEpoch) {
  EXPECT_EQ(RateJob().run(9000, [](double at) { return std::pow(0.9, std::floor(at / 30)); }), -1);
  EXPECT_EQ(RateJob().run(9000, [](double at) { return std::pow(0.1, std::floor(at / 900)); }), -1);
  EXPECT_EQ(RateJob().run(9000, [](double at) { return std::pow(0.999, at); }), -1);
}

TEST(LearningRateDecay, SchedulesThatEndAreNotGeometricHoweverShort) {
  constexpr double kLength = 60;
  const std::function<double(double)> all[] = {
      [](double at) { return 1 - at / kLength; },
      [](double at) { return 0.5 + 0.5 * std::cos(M_PI * at / kLength); },
      [](double at) { return std::pow(1 - at / kLength, 2); },
      [](double at) { return std::sqrt(1 / (1 + at)); },
      [](double at) { return at < 20   ? 1
                             : at < 30 ? 0.1
                                       : 0.01; },
  };
  for (const auto& rate : all) EXPECT_EQ(RateJob().run(60, rate), -1);
}

TEST(LearningRateDecay, AWarmUpIsNoPartOfTheDecay) {
  EXPECT_EQ(RateJob().run(300,
                          [](double at) {
                            return at < 20 ? at / 20 : std::pow(0.5, std::floor((at - 20) / 10));
                          }),
            60);
}

TEST(LearningRateDecay, TellsOfUpdatesAtARateOfZero) {
  RateJob job;
  // A linear schedule of 15 epochs that steps at each update; the hook sends a rate of 0 again with each capture.
  EXPECT_EQ(job.run(16, [](double at) { return 0.001 * std::max(0.0, 1 - at / 15); }), -1);
  EXPECT_EQ(job.log(20, 0), "learning_rate: ok");
  EXPECT_EQ(job.log(30, 0), "learning_rate: ok");
  EXPECT_EQ(job.log(40, 0), "learning_rate: hit");
  const Finding& found = job.rule.told.front().finding;
  EXPECT_EQ(found.observed.value, 25);
  EXPECT_EQ(found.first_step, 15);
  EXPECT_EQ(found.summary,
            "learning_rate is 0 since step 15, but training continues: 25 updates until step 40 "
            "have changed nothing.");
  EXPECT_EQ(job.log(41, 0.001), "learning_rate: ok");
}

TEST(LearningRateDecay, AWarmUpFromZeroAndTheLastStepsOfAScheduleAreNoSuchRates) {
  RateJob warm;
  for (std::int64_t step = 0; step < 100; step += 10) {
    EXPECT_EQ(warm.log(step, 0), "learning_rate: ok") << "it was never above";
  }
  EXPECT_EQ(RateJob().run(200, [](double at) { return std::max(0.0, 1 - at / 190); }), -1);
  RateJob restarts;
  for (std::int64_t step = 0; step < 300; ++step) {
    EXPECT_EQ(restarts.log(step, step % 60 < 50 ? 1 : 0), "learning_rate: ok");
  }
  EXPECT_EQ(RateJob("{zero_updates: 5}").run(60, [](double at) { return at < 30 ? 1 : 0; }), -1)
      << "sent once";
}

TEST(LearningRateDecay, ARateThatRisesAgainIsJudgedAnew) {
  RateJob job;
  EXPECT_EQ(job.run(24, [](double at) { return std::pow(0.9, at); }), -1);
  EXPECT_EQ(job.log(24, 1), "learning_rate: ok");
  EXPECT_EQ(job.log(30, 0.25), "learning_rate: ok");
  EXPECT_EQ(job.log(36, 0.06), "learning_rate: hit") << "1 · 6 + 0.25 · 6 and 9.2 before";
  EXPECT_EQ(job.log(37, 0.3), "learning_rate: ok") << "above a quarter";
  EXPECT_EQ(job.log(44, 0.06), "learning_rate: ok") << "two quarters in one go";
}

TEST(LearningRateDecay, WhatWentBeforeAResumedRunIsUnknown) {
  for (const std::int64_t start : {20, 60}) {
    RateJob job;
    std::string last;
    for (std::int64_t step = 0; step < 30; ++step) {
      last = job.log(start + step, std::pow(0.9, static_cast<double>(step)));
    }
    EXPECT_EQ(last, start == 20 ? "learning_rate: hit" : "learning_rate: ok");
  }
}

TEST(LearningRateDecay, TheLimitsAreParameters) {
  // √0.25 at 10, 0.25 at 20: 15 until then, 0.25 · 10 / ln 2 = 3.607 to come
  for (const bool enough : {false, true}) {
    RateJob job(enough ? "{share: 0.25, updates: 18.6}" : "{share: 0.25, updates: 18.61}");
    job.log(0, 1);
    EXPECT_EQ(job.log(10, 0.5), "learning_rate: ok");
    EXPECT_EQ(job.log(20, 0.25), enough ? "learning_rate: ok" : "learning_rate: hit");
  }
}

TEST(LearningRateDecay, EachOptimizerHasItsOwnRate) {
  RateJob job;
  for (std::int64_t step = 0; step <= 40; step += 10) {
    const double rate = std::pow(0.5, static_cast<double>(step) / 10);
    EXPECT_EQ(job.rule.step(Mode::train, step,
                            {{"learning_rate", 0.1, Role::other},
                             {"judge.learning_rate", rate, Role::other},
                             {"initial_learning_rate_x", rate, Role::other}}),
              step < 40 ? "learning_rate: ok; judge.learning_rate: ok"
                        : "learning_rate: ok; judge.learning_rate: hit");
  }
}

TEST(LearningRateDecay, ValuesThatAreNoRatesSayNothing) {
  RateJob job;
  EXPECT_EQ(job.log(0, std::numeric_limits<double>::quiet_NaN()),
            "learning_rate: insufficient_data");
  EXPECT_EQ(job.log(1, -1), "learning_rate: insufficient_data");
  EXPECT_EQ(job.log(2, 0), "learning_rate: ok");
  EXPECT_EQ(job.rule.step(Mode::eval, 3, {{"learning_rate", 1, Role::other}}), "");
}

}  // namespace
}  // namespace tocsin::rules
