#include <gtest/gtest.h>

#include "tests/unit/rules/timed_fixture.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;

// A step of 1 s, of which a worker waits so long for data.
std::vector<std::vector<Spent>> waits(double seconds) {
  return {{{"data_wait", seconds}, {"forward", 1 - seconds}}};
}

Timed data_wait(const std::string& with = "{}", std::uint32_t world = 1) {
  return {"data_wait", with, "tocsin", world};
}

TEST(DataWait, HalfOfTheTimeIsAnInformationAndFourFifthsAWarning) {
  const auto judge = [](double wait) -> std::vector<core::Issue> {
    Timed run = data_wait();
    run.steps(50, {1.0}, Mode::train, waits(wait));
    return run.rule.firing();
  };
  EXPECT_TRUE(judge(0.5).empty()) << "exactly half";
  ASSERT_EQ(judge(0.51).size(), 1U);
  EXPECT_EQ(judge(0.51)[0].severity, core::Severity::info);
  EXPECT_EQ(judge(0.75)[0].evidence.threshold->name, "info_threshold");
  ASSERT_EQ(judge(0.81).size(), 1U);
  EXPECT_EQ(judge(0.81)[0].severity, core::Severity::warning);
  EXPECT_EQ(judge(0.81)[0].evidence.threshold->value, 80);
  EXPECT_NEAR(judge(0.81)[0].evidence.observed.value, 81, 1e-9);
}

TEST(DataWait, ItsWindowHasToBeFull) {
  Timed run = data_wait();
  run.steps(49, {1.0}, Mode::train, waits(0.9));
  EXPECT_TRUE(run.rule.firing().empty());
  run.step({1.0}, Mode::train, waits(0.9));
  const auto issues = run.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].step, 49);
  EXPECT_EQ(issues[0].evidence.window.first, 0);
  EXPECT_EQ(issues[0].evidence.window.points, 50U);
}

TEST(DataWait, LongStepsCountByTheirTime) {
  Timed run = data_wait("{window: 2}");
  run.step({9.0}, Mode::train, {{{"data_wait", 8.0}}});
  run.step({1.0}, Mode::train, {{{"forward", 1.0}}});
  const auto issues = run.rule.firing();
  ASSERT_EQ(issues.size(), 1U) << "8 of 10 s, although one of two steps has not waited";
  EXPECT_EQ(issues[0].severity, core::Severity::info);
  EXPECT_EQ(issues[0].evidence.observed.value, 80);
  EXPECT_EQ(number_in(issues[0], "waited_seconds"), 8);
}

TEST(DataWait, SeveralWaitsOfAStepAddUp) {
  Timed run = data_wait("{window: 1}");
  run.step({1.0}, Mode::train, {{{"data_wait", 0.3}, {"data_wait", 0.3}}});
  ASSERT_EQ(run.rule.firing().size(), 1U);
  EXPECT_NEAR(run.rule.firing()[0].evidence.observed.value, 60, 1e-9);
}

TEST(DataWait, NothingIsJudgedUntilTheWaitingIsMarked) {
  Timed run = data_wait();
  run.steps(200, {1.0});
  run.end();
  EXPECT_TRUE(run.rule.firing().empty());
  EXPECT_EQ(run.rule.rule_state(), "NoData");
}

TEST(DataWait, OtherTracksOfThatNameAreNoPhases) {
  Timed run = data_wait("{window: 1}");
  run.step({1.0}, Mode::train, {{{"data_wait", 0.9, "dataloader/0"}}});
  run.end();
  EXPECT_TRUE(run.rule.firing().empty());
  EXPECT_EQ(run.rule.rule_state(), "NoData");
}

TEST(DataWait, ResolvesWhenTheDataComeAgain) {
  Timed run = data_wait("{window: 10}");
  run.steps(10, {1.0}, Mode::train, waits(0.9));
  run.steps(4, {1.0}, Mode::train, waits(0.0));
  EXPECT_TRUE(run.rule.resolved().empty()) << "6 × 0.9 of 10";
  run.steps(3, {1.0}, Mode::train, waits(0.0));
  ASSERT_EQ(run.rule.resolved().size(), 1U);
  EXPECT_EQ(run.rule.resolved()[0].resolution, core::Resolution::recovered);
}

TEST(DataWait, WorkersAreJudgedByThemselvesAndOnlyWhatTrains) {
  Timed run = data_wait("{window: 5}", 2);
  for (int i = 0; i < 5; ++i) {
    run.step({1.0}, Mode::train, {{{"data_wait", 0.1}}, {{"data_wait", 0.9}}});
    run.step({1.0}, Mode::eval, {{{"data_wait", 0.95}}, {{"data_wait", 0.95}}});
  }
  run.end();
  const auto issues = run.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].labels.get("worker"), "worker_1");
  EXPECT_EQ(issues[0].labels.get("mode"), "train");
}

TEST(DataWait, ModeGlobalIsJudgedAsTrain) {
  Timed run = data_wait("{window: 5}");
  run.steps(5, {1.0}, Mode::global, waits(0.9));
  ASSERT_EQ(run.rule.firing().size(), 1U);
  EXPECT_EQ(run.rule.firing()[0].mode, Mode::global);
}

TEST(DataWait, TheOrderOfWorkersRecordsDoesNotMatter) {
  const auto judge = [](bool turned) {
    Timed run = data_wait("{window: 3}", 2);
    std::vector<std::vector<OwnedFrame>> frames(2);
    for (int i = 0; i < 12; ++i) {
      for (std::size_t w = 0; w < 2; ++w) {
        frames[w].push_back(
            run.workers[w].spans(Mode::train, i, {{"data_wait", i < 6 ? 0.09 : 0.0}}));
        frames[w].push_back(run.workers[w].step_end(Mode::train, i));
      }
    }
    if (turned) std::swap(frames[0], frames[1]);
    for (std::size_t i = 0; i < frames[0].size(); ++i) {
      run.rule.feed(frames[turned ? 1 : 0][i]);
      if (i >= 10) run.rule.feed(frames[turned ? 0 : 1][i - 10]);
    }
    for (std::size_t i = frames[0].size() - 10; i < frames[0].size(); ++i) {
      run.rule.feed(frames[turned ? 0 : 1][i]);
    }
    run.end();
    return run.rule.ids();
  };
  EXPECT_EQ(judge(false).size(), 4U) << "two workers, firing and resolved";
  EXPECT_EQ(judge(false), judge(true));
}

TEST(DataWait, RefusesAnInformationAboveTheWarning) {
  EXPECT_NE(read_rules_text("  - {use: data_wait, with: {threshold: 40}}").errors, "");
  EXPECT_NE(read_rules_text("  - {use: data_wait, with: {window: 0}}").errors, "");
}

}  // namespace
}  // namespace tocsin::rules
