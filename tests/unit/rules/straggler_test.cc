#include <gtest/gtest.h>

#include "tests/unit/rules/timed_fixture.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;

Timed straggler(std::uint32_t world, const std::string& with = "{}") {
  return {"straggler", with, "tocsin", world};
}
std::vector<Spent> phases(double forward, double backward) {
  return {{"forward", forward, "phase", 0},
          {"backward", backward, "phase", forward},
          {"optimizer", 0.01, "phase", forward + backward}};
}

TEST(Straggler, HitsBeyondOneAndAHalfTimesTheMedianOfTheWorkers) {
  for (const double slow : {1.5, 1.51}) {
    Timed run = straggler(4);
    run.steps(50, {1.0, 1.0, slow, 1.0});
    const auto issues = run.rule.firing();
    ASSERT_EQ(issues.size(), slow > 1.5 ? 1U : 0U) << slow;
    if (issues.empty()) continue;
    EXPECT_EQ(issues[0].labels.get("worker"), "worker_2");
    EXPECT_EQ(issues[0].labels.get("mode"), "train");
    EXPECT_EQ(issues[0].step, 49);
    EXPECT_NEAR(issues[0].evidence.observed.value, 1.51, 1e-9);
    EXPECT_EQ(*core::as<std::string>(value_of(issues[0], "measure")), "step");
    EXPECT_EQ(number_in(issues[0], "workers"), 4);
  }
}

TEST(Straggler, FortyNineStepsAreTooFew) {
  Timed run = straggler(4);
  run.steps(49, {1.0, 1.0, 5.0, 1.0});
  EXPECT_TRUE(run.rule.firing().empty());
  run.end();
  EXPECT_EQ(run.rule.rule_state(), "NoData");
}

TEST(Straggler, SingleLongStepsAreNoStraggler) {
  Timed run = straggler(4);
  for (int i = 0; i < 100; ++i) run.step({1.0, 1.0, i % 3 == 0 ? 60.0 : 1.0, 1.0});
  run.end();
  EXPECT_TRUE(run.rule.firing().empty());
  EXPECT_EQ(run.rule.rule_state(), "NoIssuesFound");
}

TEST(Straggler, OneWorkerAloneIsNotJudged) {
  Timed run = straggler(1);
  run.steps(100, {1.0});
  run.end();
  EXPECT_TRUE(run.rule.firing().empty());
  EXPECT_EQ(run.rule.rule_state(), "NoData");
}

TEST(Straggler, TwoWorkersAreComparedWithTheirMean) {
  Timed near = straggler(2);
  near.steps(50, {1.0, 3.0});
  EXPECT_TRUE(near.rule.firing().empty()) << "3 = 1.5 × 2";
  Timed far = straggler(2);
  far.steps(50, {1.0, 3.1});
  ASSERT_EQ(far.rule.firing().size(), 1U);
  EXPECT_EQ(far.rule.firing()[0].labels.get("worker"), "worker_1");
}

TEST(Straggler, WorkersThatWaitForEachOtherAreComparedByWhatTheyCompute) {
  // All steps take 1 s: three workers wait inside backward until the slow one comes.
  Timed run = straggler(4);
  const std::vector<Spent> quick = [] {
    auto out = phases(0.1, 0.8);
    out.push_back({"communication", 0.6, "phase", 0.3});
    return out;
  }();
  run.steps(50, {1.0}, Mode::train, {quick, quick, phases(0.3, 0.6), quick});
  const auto issues = run.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].labels.get("worker"), "worker_2");
  EXPECT_EQ(*core::as<std::string>(value_of(issues[0], "measure")), "compute");
  EXPECT_NEAR(number_in(issues[0], "median_seconds"), 0.91, 1e-9);
  EXPECT_NEAR(number_in(issues[0], "workers_median_seconds"), 0.31, 1e-9);
}

TEST(Straggler, TheForwardPassTellsWhereNobodyMarksHisWaiting) {
  Timed run = straggler(4);
  run.steps(50, {1.0}, Mode::train,
            {phases(0.2, 0.7), phases(0.2, 0.7), phases(0.5, 0.4), phases(0.2, 0.7)});
  const auto issues = run.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].labels.get("worker"), "worker_2");
  EXPECT_EQ(*core::as<std::string>(value_of(issues[0], "measure")), "forward");
}

TEST(Straggler, CommunicationBesideThePassesIsNoSignThatTheirWaitingIsMarked) {
  const auto with_barrier = [](double forward) {
    auto out = phases(forward, 0.9 - forward);
    out.push_back({"communication", 0.02, "phase", 0.95});  // after the update
    return out;
  };
  Timed run = straggler(4);
  run.steps(50, {1.0}, Mode::train,
            {with_barrier(0.2), with_barrier(0.2), with_barrier(0.5), with_barrier(0.2)});
  const auto issues = run.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].labels.get("worker"), "worker_2");
  EXPECT_EQ(*core::as<std::string>(value_of(issues[0], "measure")), "forward");
}

TEST(Straggler, AWorkerWhoseDataComeLateIsOne) {
  // All steps take 1 s: the others wait inside backward for the one that waits for its data.
  const auto loaded = [](double wait, double waited) {
    return std::vector<Spent>{{"data_wait", wait, "phase", 0},
                              {"forward", 0.1, "phase", wait},
                              {"backward", 0.1 + waited, "phase", wait + 0.1},
                              {"communication", waited, "phase", wait + 0.2},
                              {"optimizer", 0.01, "phase", wait + 0.2 + waited}};
  };
  Timed run = straggler(3);
  run.steps(50, {1.0}, Mode::train, {loaded(0.01, 0.7), loaded(0.7, 0.01), loaded(0.01, 0.7)});
  const auto issues = run.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].labels.get("worker"), "worker_1");
  EXPECT_NEAR(number_in(issues[0], "median_seconds"), 0.91, 1e-9);
  EXPECT_NEAR(number_in(issues[0], "score"), 0.22 / 0.91, 1e-9) << "the quickest takes 0.22 s";
  EXPECT_NEAR(number_in(issues[0], "own_score"), 1, 1e-9) << "it was never quicker";
  const core::Value* sections = value_of(issues[0], "sections");
  const core::Value* wait = core::find(*sections, "data_wait");
  EXPECT_NEAR(*core::as<double>(core::find(*wait, "score")), 0.01 / 0.7, 1e-9);
  const core::Value* pass = core::find(*sections, "forward");
  EXPECT_NEAR(*core::as<double>(core::find(*pass, "score")), 1, 1e-9);
  EXPECT_NEAR(
      *core::as<double>(core::find(*core::find(*sections, "communication"), "best_seconds")), 0.01,
      1e-9);
}

TEST(Straggler, AWorkerThatBecameSlowIsComparedWithItsOwnBestToo) {
  Timed run = straggler(4, "{window: 10}");
  run.steps(10, {1.0, 1.0, 1.0, 1.0});
  run.steps(10, {1.0, 1.0, 4.0, 1.0});
  const auto issues = run.rule.firing();
  ASSERT_FALSE(issues.empty());
  EXPECT_NEAR(number_in(issues[0], "own_best_seconds"), 1, 1e-9);
  EXPECT_NEAR(number_in(issues[0], "own_score"), 1 / number_in(issues[0], "median_seconds"), 1e-9);
}

TEST(Straggler, WhereOnlyWaitingForDataIsToldWholeStepsAreCompared) {
  Timed run = straggler(3);
  const std::vector<Spent> only{{"data_wait", 0.1, "phase", 0}};
  run.steps(50, {1.0, 2.0, 1.0}, Mode::train, {only, only, only});
  const auto issues = run.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(*core::as<std::string>(value_of(issues[0], "measure")), "step");
}

TEST(Straggler, AForwardPassOfNoWeightTellsNothing) {
  Timed run = straggler(4);
  run.steps(50, {1.0}, Mode::train,
            {phases(0.01, 0.9), phases(0.01, 0.9), phases(0.05, 0.9), phases(0.01, 0.9)});
  run.end();
  EXPECT_TRUE(run.rule.firing().empty());
  EXPECT_EQ(run.rule.rule_state(), "NoIssuesFound");
}

TEST(Straggler, WholeStepsAreComparedWhenSomeWorkerMarksNoPhases) {
  Timed run = straggler(3);
  run.steps(50, {1.0, 2.0, 1.0}, Mode::train, {phases(0.1, 0.1), {}, phases(0.1, 0.1)});
  const auto issues = run.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(*core::as<std::string>(value_of(issues[0], "measure")), "step");
}

TEST(Straggler, ResolvesWhenItHasCaughtUp) {
  Timed run = straggler(4, "{window: 10}");
  run.steps(10, {1.0, 1.0, 4.0, 1.0});
  run.steps(5, {1.0});
  EXPECT_TRUE(run.rule.resolved().empty()) << "its median is 2.5";
  run.steps(3, {1.0});
  EXPECT_EQ(run.rule.resolved().size(), 1U);
}

TEST(Straggler, AWorkerThatHasLeftIsNotComparedAnyMore) {
  Timed run = straggler(3, "{window: 5}");
  run.steps(5, {1.0, 1.0, 1.0});
  run.rule.feed(run.workers[0].end());
  run.workers.erase(run.workers.begin());
  run.steps(5, {1.0, 3.1});  // of the two that are left: 3.1 > 1.5 × 2.05
  const auto issues = run.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(number_in(issues[0], "workers"), 2);
}

TEST(Straggler, TheOrderOfWorkersRecordsDoesNotMatter) {
  const auto judge = [](bool turned) {
    Timed run = straggler(3, "{window: 4}");
    std::vector<std::vector<OwnedFrame>> frames(3);
    for (int i = 0; i < 20; ++i) {
      for (std::size_t w = 0; w < 3; ++w) {
        run.workers[w].step_time = w == 1 && i > 5 && i < 12 ? 3 * kSecond : kSecond;
        frames[w].push_back(run.workers[w].step_end(Mode::train, i));
      }
    }
    if (turned) std::reverse(frames.begin(), frames.end());
    for (const auto& one : frames) {
      for (const auto& frame : one) run.rule.feed(frame);
    }
    run.end();
    return run.rule.ids();
  };
  EXPECT_EQ(judge(false).size(), 2U);
  EXPECT_EQ(judge(false), judge(true));
}

TEST(Straggler, StepsThatComeAfterTheyWereClosedAreCountedAndLeftOut) {
  Timed run = straggler(2, "{window: 3}");
  run.steps(5, {1.0});
  EXPECT_EQ(run.rule.engine().stats().late_rows, 0U);
  run.rule.feed(run.workers[0].spans(Mode::train, 2, {{"forward", 9.0}}));
  run.rule.feed(run.workers[0].step_end(Mode::train, 2));
  EXPECT_EQ(run.rule.engine().stats().late_rows, 2U);
}

TEST(Straggler, RefusesAThresholdThatHalfOfTheWorkersPass) {
  EXPECT_NE(read_rules_text("  - {use: straggler, with: {threshold: 1}}").errors, "");
}

}  // namespace
}  // namespace tocsin::rules
