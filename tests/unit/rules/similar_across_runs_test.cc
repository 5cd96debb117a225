#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <optional>

#include "tests/support/rule_harness.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;
using ::testing::HasSubstr;
using ::testing::Not;

/// Run `b` is the one that all others are compared with.
struct TwoRuns {
  RuleHarness rule;
  FakeWorker a{"digits", "a"};
  FakeWorker b{"digits", "b"};

  explicit TwoRuns(const std::string& with = "")
      : rule(RuleHarness::of("similar_across_runs",
                             "{other_trials: " + core::to_text(core::run_uid_for("digits", "b")) +
                                 ", collection_names: [weights]" +
                                 (with.empty() ? "" : ", " + with) + "}")) {
    for (FakeWorker* worker : {&a, &b}) {
      rule.feed(worker->start());
      rule.feed(worker->dictionary({{core::DictionaryType::tensor, "w", Role::weight},
                                    {core::DictionaryType::tensor, "v", Role::weight}}));
    }
  }
  void send(FakeWorker& worker, std::int64_t step, const std::vector<TensorValues>& tensors) {
    rule.feed(worker.tensors(Mode::train, step, tensors));
    rule.feed(worker.step_end(Mode::train, step));
  }
  void step(FakeWorker& worker, std::int64_t number, const std::vector<double>& values) {
    send(worker, number, {{"w", values, Role::weight}});
  }
  void digest(FakeWorker& worker, std::int64_t step, std::uint64_t digest, double value = 1) {
    core::SummaryRow row = summarize({"w", {value, 2 * value}, Role::weight});
    rule.feed(worker.summary(Mode::train, step, {row},
                             {{core::SparseStat::digest, 0, std::bit_cast<double>(digest)}}));
    rule.feed(worker.step_end(Mode::train, step));
  }
  std::string sum() {
    std::string out;
    for (const Event& event : rule.events()) {
      const auto* status = std::get_if<core::RuleStatusEvent>(&event);
      if (status != nullptr && status->run.uid == core::run_uid_for("digits", "a")) {
        out = core::to_json(status->summary);
      }
    }
    return out;
  }
};

TEST(SimilarAcrossRuns, FiresOnDifference) {
  TwoRuns runs;
  runs.step(runs.b, 0, {1, 2});
  runs.step(runs.a, 0, {1, 2.1});
  const auto issues = runs.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].run.uid, core::run_uid_for("digits", "a"));
  EXPECT_EQ(issues[0].kind, "");
  EXPECT_EQ(issues[0].labels.get("tensor"), "w");
  EXPECT_EQ(issues[0].step, 0);
  EXPECT_THAT(issues[0].summary, HasSubstr("different from run"));
}

TEST(SimilarAcrossRuns, IsQuietWithinTheTolerance) {
  TwoRuns runs("rtol: 0.5, atol: 0");
  runs.step(runs.b, 0, {2});
  runs.step(runs.a, 0, {3});  // exactly |b|·rtol
  EXPECT_TRUE(runs.rule.firing().empty());
  runs.step(runs.b, 1, {2});
  runs.step(runs.a, 1, {3.0001});
  EXPECT_EQ(runs.rule.firing().size(), 1U);
}

TEST(SimilarAcrossRuns, TheToleranceIsOfTheOtherRunsValue) {
  TwoRuns runs("rtol: 0.4, atol: 0");
  runs.step(runs.b, 0, {3});
  runs.step(runs.a, 0, {2});  // off by 1, of 3 that is a third
  EXPECT_TRUE(runs.rule.firing().empty());
}

TEST(SimilarAcrossRuns, WaitsForTheRunThatIsBehind) {
  TwoRuns runs;
  runs.step(runs.a, 0, {1});
  runs.step(runs.a, 1, {2});
  EXPECT_TRUE(runs.rule.firing().empty());
  runs.step(runs.b, 0, {1});
  EXPECT_TRUE(runs.rule.firing().empty());
  runs.step(runs.b, 1, {7});
  ASSERT_EQ(runs.rule.firing().size(), 1U);
  EXPECT_EQ(runs.rule.firing()[0].step, 1);
}

TEST(SimilarAcrossRuns, TheOtherRunMayBeFinished) {
  TwoRuns runs;
  runs.step(runs.b, 0, {1});
  runs.rule.feed(runs.b.end());
  runs.step(runs.a, 0, {7});
  ASSERT_EQ(runs.rule.firing().size(), 1U);
  runs.rule.feed(runs.a.end());
  EXPECT_THAT(runs.sum(), HasSubstr(R"("steps_compared":1,)"));
}

TEST(SimilarAcrossRuns, EqualDigestsProveEqualityAndUnequalOnesDifferenceWithoutTolerance) {
  TwoRuns loose;
  loose.digest(loose.b, 0, 17);
  loose.digest(loose.a, 0, 17);
  loose.digest(loose.b, 1, 17);
  loose.digest(loose.a, 1, 18);
  loose.rule.feed(loose.a.end());
  EXPECT_TRUE(loose.rule.firing().empty());
  EXPECT_THAT(loose.sum(), HasSubstr(R"("same":1,"similar":1,"different":0)"));
  TwoRuns exact("rtol: 0, atol: 0");
  exact.digest(exact.b, 0, 17);
  exact.digest(exact.a, 0, 18);
  EXPECT_EQ(exact.rule.firing().size(), 1U);
}

TEST(SimilarAcrossRuns, TheFirstElementThatIsKnownToDiffer) {
  const auto first = [](const std::vector<double>& here, std::optional<double> bad_here,
                        const std::vector<double>& there, std::optional<double> bad_there) {
    TwoRuns runs;
    const auto send = [&](FakeWorker& worker, const std::vector<double>& values,
                          std::optional<double> bad) {
      std::vector<Statistic> statistics;
      if (bad) statistics.push_back({core::SparseStat::first_bad_index, 0, *bad});
      runs.rule.feed(
          worker.summary(Mode::train, 0, {summarize({"w", values, Role::weight})}, statistics));
      runs.rule.feed(worker.step_end(Mode::train, 0));
    };
    send(runs.b, there, bad_there);
    send(runs.a, here, bad_here);
    EXPECT_EQ(runs.rule.firing().size(), 1U);
    return core::to_json(core::Value(runs.rule.firing()[0].evidence.values));
  };
  EXPECT_THAT(first({1, NAN}, 1, {1, 2}, {}), HasSubstr(R"("first_index":1)"));
  EXPECT_THAT(first({NAN, NAN}, 0, {1, HUGE_VAL}, 1), HasSubstr(R"("first_index":0)"));
  EXPECT_THAT(first({NAN, NAN}, 0, {NAN, 1}, 0), Not(HasSubstr("first_index")))
      << "both begin alike";
  EXPECT_THAT(first({1, NAN}, {}, {1, 2}, {}), Not(HasSubstr("first_index"))) << "nobody has said";
  EXPECT_THAT(first({1, NAN}, 1e300, {1, 2}, {}), Not(HasSubstr("first_index")));
  EXPECT_THAT(first({3}, {}, {2}, {}), HasSubstr(R"("first_index":0)"));
  EXPECT_THAT(first({1, 3}, {}, {1, 2}, {}), Not(HasSubstr("first_index")));
}

TEST(SimilarAcrossRuns, ShapesThatDiffer) {
  TwoRuns runs;
  runs.step(runs.b, 0, {1, 1});
  runs.step(runs.a, 0, {1, 1, 1});
  ASSERT_EQ(runs.rule.firing().size(), 1U);
  EXPECT_THAT(runs.rule.firing()[0].summary, HasSubstr("its shape is 3 here and 2 there"));
}

TEST(SimilarAcrossRuns, NanEqualsNanUnlessToldOtherwise) {
  for (const bool equal : {true, false}) {
    TwoRuns runs(equal ? "" : "equal_nan: false");
    runs.step(runs.b, 0, {NAN, 1});
    runs.step(runs.a, 0, {NAN, 1});
    EXPECT_EQ(runs.rule.firing().size(), equal ? 0U : 1U);
  }
  TwoRuns runs;
  runs.step(runs.b, 0, {2, 1});
  runs.step(runs.a, 0, {NAN, 1});
  EXPECT_EQ(runs.rule.firing().size(), 1U) << "a NaN differs from every number";
}

TEST(SimilarAcrossRuns, InfinitiesAgreeOnlyWithThemselves) {
  TwoRuns runs;
  runs.step(runs.b, 0, {HUGE_VAL, 1});
  runs.step(runs.a, 0, {HUGE_VAL, 1});
  EXPECT_TRUE(runs.rule.firing().empty());
  runs.step(runs.b, 1, {-HUGE_VAL, 1});
  runs.step(runs.a, 1, {HUGE_VAL, 1});
  EXPECT_EQ(runs.rule.firing().size(), 1U);
}

TEST(SimilarAcrossRuns, StepsOfOneRunAloneAreCounted) {
  TwoRuns runs;
  for (const std::int64_t step : {0, 2, 4}) runs.step(runs.b, step, {1});
  for (const std::int64_t step : {0, 1, 4}) runs.step(runs.a, step, {1});
  runs.rule.feed(runs.a.end());
  EXPECT_TRUE(runs.rule.firing().empty());
  EXPECT_THAT(runs.sum(),
              HasSubstr(R"("steps_compared":2,"steps_only_here":1,"steps_only_there":1,)"
                        R"("steps_not_reached":0,)"));
}

TEST(SimilarAcrossRuns, ATensorOfOneRunAlone) {
  for (const bool hits : {false, true}) {
    TwoRuns runs(hits ? "missing: hit" : "");
    runs.send(runs.b, 0, {{"w", {1}, Role::weight}, {"v", {1}, Role::weight}});
    runs.step(runs.a, 0, {1});
    const auto issues = runs.rule.firing();
    ASSERT_EQ(issues.size(), hits ? 1U : 0U);
    if (!hits) continue;
    EXPECT_EQ(issues[0].kind, "missing");
    EXPECT_EQ(issues[0].labels.get("tensor"), "v");
  }
}

TEST(SimilarAcrossRuns, ItIsNotComparedWithItself) {
  TwoRuns runs;
  runs.step(runs.b, 0, {1});
  runs.step(runs.b, 1, {2});
  runs.rule.feed(runs.b.end());
  EXPECT_TRUE(runs.rule.firing().empty());
}

TEST(SimilarAcrossRuns, SaysThatNothingOfTheOtherRunWasSeen) {
  TwoRuns runs;
  runs.step(runs.a, 0, {1});
  runs.rule.feed(runs.a.end());
  EXPECT_EQ(runs.rule.rule_state(), "NoData");
}

TEST(SimilarAcrossRuns, WhatTheOtherRunHasNotReachedIsCounted) {
  TwoRuns runs;
  for (const std::int64_t step : {0, 1, 2}) runs.step(runs.a, step, {1});
  runs.step(runs.b, 0, {1});
  runs.rule.feed(runs.a.end());
  EXPECT_THAT(runs.sum(), HasSubstr(R"("steps_not_reached":2)"));
}

TEST(SimilarAcrossRuns, RefusesWhatIsNoRun) {
  EXPECT_THAT(read_rules_text(" [{use: similar_across_runs, with: {other_trials: mine, "
                              "collection_names: [weights]}}]")
                  .errors,
              HasSubstr("is no run uid"));
  EXPECT_THAT(
      read_rules_text(" [{use: similar_across_runs, with: {collection_names: [weights]}}]").errors,
      HasSubstr("other_trials"));
  EXPECT_THAT(read_rules_text(" [{use: similar_across_runs, with: {other_trials: "
                              "4e3046d4-8c1f-5278-82e3-ea3595bc5999}}]")
                  .errors,
              HasSubstr("collection_names"));
}

}  // namespace
}  // namespace tocsin::rules
