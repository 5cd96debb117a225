#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/rules/timed_fixture.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;

// Conformance vector of the specification: 1000 steps of 1 s and 11 of 10 s.
Timed long_run(int outliers, const std::string& with = "{window: 0}") {
  Timed run("step_outlier", with, "original");
  run.steps(500, {1.0});
  run.steps(outliers, {10.0});
  run.steps(500, {1.0});
  run.end();
  return run;
}

TEST(StepOutlier, ElevenLongStepsOfAThousandHitAndTenDoNot) {
  Timed eleven = long_run(11);
  const auto issues = eleven.rule.firing();
  ASSERT_FALSE(issues.empty());
  const core::Issue& last = issues.back();
  EXPECT_EQ(last.evidence.observed.value, 11);
  EXPECT_EQ(last.evidence.window.clock, "time");
  EXPECT_EQ(last.labels.get("worker"), "worker_0");
  EXPECT_EQ(last.labels.get("mode"), "train");

  Timed ten = long_run(10);
  EXPECT_TRUE(ten.rule.firing().empty());
  EXPECT_EQ(ten.rule.rule_state(), "NoIssuesFound");
}

TEST(StepOutlier, ItsEvidenceIsThatOfTheWholeWindow) {
  Timed run = long_run(11, "{window: 0, cooldown: 0s}");
  const auto issues = run.rule.firing();
  ASSERT_FALSE(issues.empty());
  const core::Issue& last = issues.back();
  EXPECT_NEAR(number_in(last, "mean_seconds"), 1.0979, 1e-3);
  EXPECT_NEAR(number_in(last, "sigma_seconds"), 0.934, 1e-3);
  EXPECT_NEAR(number_in(last, "limit_seconds"), 3.90, 1e-2);
  EXPECT_EQ(number_in(last, "p50_seconds"), 1);
  EXPECT_EQ(number_in(last, "max_seconds"), 10);
  const auto* steps = core::as<core::ValueList>(value_of(last, "outlier_steps"));
  ASSERT_NE(steps, nullptr);
  ASSERT_EQ(steps->size(), 11U);
  EXPECT_EQ(*core::as<std::int64_t>(steps->front()), 500);
}

TEST(StepOutlier, AHundredStepsAreTooFew) {
  for (const int steps : {100, 101}) {
    Timed run("step_outlier", "{n_outliers: 1, every: 1}", "original");
    run.steps(steps - 3, {1.0});
    run.steps(3, {10.0});
    run.end();
    EXPECT_EQ(run.rule.firing().empty(), steps == 100) << steps;
    EXPECT_EQ(run.rule.rule_state(), steps == 100 ? "NoData" : "IssuesFound");
  }
}

TEST(StepOutlier, EqualStepsHaveNoOutliers) {
  Timed run("step_outlier", "{n_outliers: 1}", "original");
  run.steps(300, {0.5});
  run.end();
  EXPECT_TRUE(run.rule.firing().empty());
  EXPECT_EQ(run.rule.rule_state(), "NoIssuesFound");
}

TEST(StepOutlier, StepsThatAreShortAreNoOutliers) {
  Timed run("step_outlier", "{n_outliers: 1}", "original");
  run.steps(300, {1.0});
  run.steps(3, {0.01});
  run.end();
  EXPECT_TRUE(run.rule.firing().empty());
}

TEST(StepOutlier, WhatLeavesTheWindowCountsNoMore) {
  Timed run("step_outlier", "{n_outliers: 2, window: 101, every: 1, clear_after: 1}", "original");
  run.steps(100, {1.0});
  run.steps(3, {10.0});
  EXPECT_EQ(run.rule.firing().size(), 1U);
  run.steps(98, {1.0});
  EXPECT_TRUE(run.rule.resolved().empty());
  run.step({1.0});  // the first of the three is out
  EXPECT_EQ(run.rule.resolved().size(), 1U);
}

TEST(StepOutlier, EveryModeIsJudgedByItselfAndAGivenModeExcludesTheOthers) {
  const auto judge = [](const std::string& with) {
    Timed run("step_outlier", with, "original");
    run.steps(200, {1.0}, Mode::eval);
    run.steps(200, {5.0}, Mode::train);
    run.steps(12, {60.0}, Mode::train);
    run.end();
    return run.rule.firing();
  };
  const auto both = judge("{}");
  ASSERT_FALSE(both.empty());
  for (const auto& issue : both) EXPECT_EQ(issue.labels.get("mode"), "train");
  EXPECT_FALSE(judge("{mode: TRAIN}").empty());
  EXPECT_TRUE(judge("{mode: EVAL}").empty());
}

TEST(StepOutlier, EvaluationsInATrainingAreJudgedToo) {
  Timed run("step_outlier", "{mode: EVAL, every: 10, n_outliers: 2}", "original");
  for (int pass = 0; pass < 12; ++pass) {
    run.steps(10, {1.0}, Mode::train);
    run.steps(10, {pass == 11 ? 9.0 : 0.1}, Mode::eval);
  }
  EXPECT_TRUE(run.rule.firing().empty()) << "somebody may still evaluate";
  run.step({1.0});
  const auto issues = run.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].mode, Mode::eval);
}

TEST(StepOutlier, APeriodIsJudgedWhenItsWorkerHasPassedItsEnd) {
  Timed run("step_outlier", "{n_outliers: 1}", "original");
  run.workers[0].header.time = kStart - kStart % (60 * kSecond);
  run.steps(117, {0.5});
  run.steps(2, {0.7});
  EXPECT_TRUE(run.rule.firing().empty()) << "59.9 s of the minute are over";
  run.step({0.5});
  const auto issues = run.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(core::nanoseconds(issues[0].time) % (60 * kSecond), 0);
}

TEST(StepOutlier, OursNeedsLongStepsThatTakeAShareOfAllTime) {
  // 6 of 150 steps at t times the others: they take 6 (t − 1) of 144 + 6 t beyond the median.
  const auto judge = [](double t, int outliers = 6) {
    Timed run("step_outlier", "{}", "tocsin");
    run.steps(149 - outliers, {0.1});
    run.steps(outliers, {0.1 * t});
    run.step({0.1});
    run.end();
    return !run.rule.firing().empty();
  };
  EXPECT_FALSE(judge(7)) << "36 of 186";
  EXPECT_TRUE(judge(8)) << "42 of 192";
  EXPECT_FALSE(judge(8, 5)) << "five may be";
}

TEST(StepOutlier, OursLeavesTheMillisecondsOfAMachineAlone) {
  // Most of all time, and yet no step takes 0.1 s more than the others' millisecond.
  const auto judge = [](double slow, const std::string& with = "{}") {
    Timed run("step_outlier", with, "tocsin");
    run.steps(143, {0.001});
    run.steps(6, {slow});
    run.step({0.001});
    run.end();
    return !run.rule.firing().empty();
  };
  EXPECT_FALSE(judge(0.100));
  EXPECT_TRUE(judge(0.102));
  EXPECT_TRUE(judge(0.040, "{min_excess_seconds: 0.03}"));
  EXPECT_TRUE(judge(0.040, "{min_excess_seconds: 0}"));
}

TEST(StepOutlier, OursJudgesEveryFiftySteps) {
  Timed run("step_outlier", "{}", "tocsin");
  run.steps(120, {0.1});
  run.steps(10, {2.0});
  run.steps(19, {0.1});
  EXPECT_TRUE(run.rule.firing().empty());
  run.step({0.1});
  const auto issues = run.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].step, 149);
  EXPECT_EQ(issues[0].evidence.window.clock, "step");
  EXPECT_EQ(issues[0].evidence.window.first, 0);
}

TEST(StepOutlier, SaysWhatWasActiveAndWhatTheOthersTook) {
  Timed run("step_outlier", "{n_outliers: 2, every: 1}", "original", 2);
  run.steps(105, {1.0, 1.0}, Mode::train, {{{"forward", 0.5}}});
  for (int i = 0; i < 3; ++i) {
    run.step({10.0, 1.0}, Mode::train, {{{"forward", 0.5}, {"checkpoint", 9.0}}});
  }
  const auto issues = run.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].labels.get("worker"), "worker_0");
  const core::Value* active = value_of(issues[0], "active_seconds");
  ASSERT_NE(active, nullptr);
  const auto& named = *core::as<core::ValueMap>(*active);
  ASSERT_EQ(named.size(), 2U) << "two names, longest first; no dictionary has named them";
  EXPECT_EQ(*core::as<double>(named[0].second), 27);
  const core::Value* others = value_of(issues[0], "other_workers");
  ASSERT_NE(others, nullptr);
  EXPECT_EQ(
      *core::as<double>(core::find((*core::as<core::ValueList>(*others))[0], "median_seconds")),
      1.0);
}

TEST(StepOutlier, OneSlowWorkerIsNoMatterOfTheOthers) {
  Timed run("step_outlier", "{n_outliers: 2, every: 1}", "original", 3);
  run.steps(105, {1.0});
  run.steps(3, {1.0, 10.0, 1.0});
  const auto issues = run.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].labels.get("worker"), "worker_1");
}

TEST(StepOutlier, StepsWhoseEndWasLostAreGaps) {
  Timed run("step_outlier", "{n_outliers: 1, every: 1}", "original");
  run.steps(150, {1.0});
  run.workers[0].header.time += 100 * kSecond;
  run.next[1] += 10;
  run.steps(150, {1.0});
  run.end();
  EXPECT_TRUE(run.rule.firing().empty());
}

TEST(StepOutlier, JudgesTheSameAfterARestart) {
  const auto story = [](RuleHarness& into, std::size_t from, std::size_t to) {
    Timed made("step_outlier", "{}", "original");
    std::vector<OwnedFrame> frames{made.workers[0].start()};
    for (int i = 0; i < 240; ++i) {
      made.workers[0].step_time = i % 20 == 7 ? 5 * kSecond : kSecond / 2;
      frames.push_back(made.workers[0].step_end(Mode::train, i));
    }
    frames.push_back(made.workers[0].end());
    for (std::size_t i = from; i < std::min(to, frames.size()); ++i) {
      into.feed_at(frames[i], static_cast<std::int64_t>(i));
    }
  };
  RuleHarness whole = RuleHarness::of("step_outlier", "{n_outliers: 3}", "original");
  story(whole, 0, 1000);
  RuleHarness first = RuleHarness::of("step_outlier", "{n_outliers: 3}", "original");
  story(first, 0, 130);
  std::vector<std::string> ids = first.ids();
  RuleHarness second = RuleHarness::of("step_outlier", "{n_outliers: 3}", "original");
  std::vector<StateRecord> records = first.log();
  while (first.engine().snapshot(3, std::size_t{1} << 40,
                                 [&](StateRecord one) { records.push_back(std::move(one)); })) {
  }
  for (const StateRecord& one : records) {
    ASSERT_TRUE(second.engine().restore(
        3, one.key, one.value ? std::optional<std::string_view>(*one.value) : std::nullopt));
  }
  ASSERT_TRUE(second.engine().finish_restore(3, {}));
  second.engine().go_live(3, core::wall_time(kStart));
  story(second, 130, 1000);
  for (const std::string& id : second.ids()) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(ids, whole.ids());
  EXPECT_FALSE(whole.firing().empty());
}

TEST(StepOutlier, RefusesWindowsThatAreTooShort) {
  EXPECT_NE(read_rules_text("  - {use: step_outlier, with: {window: 100}}").errors.find("100"),
            std::string::npos);
  EXPECT_EQ(read_rules_text("  - {use: StepOutlier, with: {window: 101, mode: eval}}").errors, "");
  EXPECT_NE(read_rules_text("  - {use: step_outlier, with: {mode: test}}").errors.find("PREDICT"),
            std::string::npos);
  EXPECT_NE(read_rules_text("  - {use: step_outlier, with: {stddev: 0}}").errors, "");
}

}  // namespace
}  // namespace tocsin::rules
