// Pieces of the axis that several judge together: workers and tensors that across() folds, and selections
// of `let`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/support/rule_harness.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Two workers, each with a loss or without one at a step.
struct Pair {
  RuleHarness rule;
  std::vector<FakeWorker> workers;

  explicit Pair(const std::string& with)
      : rule("  - {name: r, clear_after: 1, cooldown: 0s, " + with + "}") {
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      workers.emplace_back("digits", "pieces", rank, 2);
      rule.feed(workers.back().start());
      rule.feed(workers.back().dictionary({{core::DictionaryType::scalar, "loss", Role::loss}}));
    }
  }
  void step(std::int64_t step, std::optional<double> first, std::optional<double> second) {
    for (std::size_t w = 0; w < 2; ++w) {
      const std::optional<double> value = w == 0 ? first : second;
      if (value) rule.feed(workers[w].scalars(Mode::train, {{"loss", step, *value}}));
      rule.feed(workers[w].step_end(Mode::train, step));
    }
  }
  std::vector<std::int64_t> fired() {
    std::vector<std::int64_t> out;
    for (const core::Issue& issue : rule.firing()) out.push_back(issue.step.value_or(-1));
    return out;
  }
};

const std::string kLosses = "select: 'metric(\"loss\")', by: [metric], ";

TEST(DeclaredPieces, WorkersAreFoldedAtTheLastStepOfAPiece) {
  Pair pair(kLosses + "window: every 3 steps, when: 'across(max, mean(value)) > 5'");
  pair.step(0, 1, 9);  // who has something in the piece only is a member of it
  pair.step(1, 1, {});
  EXPECT_THAT(pair.fired(), IsEmpty());
  pair.step(2, 1, {});
  EXPECT_THAT(pair.fired(), ElementsAre(2));
  EXPECT_EQ(pair.rule.firing()[0].evidence.observed.value, 9);
  for (std::int64_t s = 3; s < 6; ++s) pair.step(s, 1, {});
  EXPECT_THAT(pair.fired(), ElementsAre(2)) << "what was in the piece before is over";
  EXPECT_EQ(pair.rule.resolved().size(), 1U);
}

TEST(DeclaredPieces, APieceWhoseLastStepIsMissingIsJudgedWithTheFirstStepBehindIt) {
  Pair pair(kLosses + "window: every 3 steps, when: 'across(max, mean(value)) > 5'");
  pair.step(0, 1, 9);
  pair.step(4, 1, 1);
  EXPECT_THAT(pair.fired(), ElementsAre(4));
  pair.step(5, 1, 1);
  EXPECT_EQ(pair.rule.resolved().size(), 1U);
}

TEST(DeclaredPieces, WindowsThatHop) {
  Pair pair(kLosses + "window: last 4 steps every 2 steps, when: 'across(max, mean(value)) > 5'");
  for (std::int64_t s = 0; s < 4; ++s) pair.step(s, 1, s < 2 ? 9 : 3);  // mean 6
  EXPECT_THAT(pair.fired(), ElementsAre(3)) << "the first window is full at step 3";
  for (std::int64_t s = 4; s < 6; ++s) pair.step(s, 1, {});  // its latest four steps: 3, 3
  EXPECT_EQ(pair.rule.resolved().size(), 1U);
}

TEST(DeclaredPieces, StepsHaveThemToo) {
  Pair pair(
      "select: step(), by: [run_uid], window: every 2 steps, when: "
      "'across(max, mean(duration)) > 1.5 * across(min, mean(duration))'");
  pair.workers[0].step_time = kSecond;
  pair.workers[1].step_time = 2 * kSecond;
  pair.step(0, {}, {});
  EXPECT_THAT(pair.fired(), IsEmpty());
  pair.step(1, {}, {});
  EXPECT_THAT(pair.fired(), ElementsAre(1));
  Pair alone("select: step(), window: every 2 steps, when: 'mean(duration) > 1500ms'");
  alone.workers[0].step_time = kSecond;
  alone.workers[1].step_time = 2 * kSecond;
  for (std::int64_t s = 0; s < 4; ++s) alone.step(s, {}, {});
  ASSERT_THAT(alone.fired(), ElementsAre(1, 3));
  EXPECT_EQ(alone.rule.firing()[0].labels.get("worker"), "worker_1");
}

TEST(DeclaredPieces, APauseOfAllEndsASession) {
  Pair pair(kLosses + "window: session 10s, when: 'across(count, mean(value)) == 2'");
  pair.step(0, 1, 1);
  const auto later = [&](std::int64_t seconds) {
    for (FakeWorker& worker : pair.workers) worker.header.time += seconds * kSecond;
  };
  later(5);
  pair.step(1, 1, {});
  later(9);
  pair.step(2, {}, 1);  // the second was silent for 14 s, both together never for more than 9
  EXPECT_THAT(pair.fired(), IsEmpty());
  later(11);
  pair.step(3, 1, {});
  EXPECT_THAT(pair.fired(), ElementsAre(3));
  later(11);
  pair.step(4, 1, 1);
  EXPECT_EQ(pair.rule.resolved().size(), 1U) << "in the session of step 3 one worker was alone";
}

TEST(DeclaredPieces, SelectionsOfLetAreJudgedWithTheFirstPointBehindThePiece) {
  RuleHarness rule(
      "  - {name: r, clear_after: 1, let: {a: 'metric(\"a\")', b: 'metric(\"b\")'}, window: every "
      "3 "
      "steps, when: 'mean(a.value) > mean(b.value)'}");
  FakeWorker worker;
  rule.feed(worker.start());
  rule.feed(worker.dictionary({{core::DictionaryType::scalar, "a", Role::metric},
                               {core::DictionaryType::scalar, "b", Role::metric}}));
  const auto step = [&](std::int64_t number, double a, double b) {
    rule.feed(worker.scalars(Mode::train, {{"a", number, a}}));
    rule.feed(worker.scalars(Mode::train, {{"b", number, b}}));
    rule.feed(worker.step_end(Mode::train, number));
  };
  step(0, 5, 1);
  step(1, 5, 1);
  step(2, 5, 20);  // 5 against 22/3
  step(3, 5, 1);
  EXPECT_THAT(rule.firing(), IsEmpty());
  step(4, 5, 1);
  step(5, 5, 1);
  EXPECT_THAT(rule.firing(), IsEmpty()) << "b may still come";
  step(6, 1, 5);
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_EQ(rule.firing()[0].step, 6);
  step(9, 1, 5);
  EXPECT_EQ(rule.resolved().size(), 1U);
}

TEST(DeclaredPieces, WhatHasNoMeaningIsRefusedWithTheReason) {
  const auto errors = [](const std::string& rule) {
    return read_rules_text("  - {name: r, " + rule + "}").errors;
  };
  const std::string two =
      "let: {t: 'metric(\"a\"){mode=\"train\"}', e: 'metric(\"a\"){mode=\"eval\"}'}, when: "
      "'mean(t.value) > mean(e.value)', window: ";
  EXPECT_THAT(errors(two + "every 3 steps"), HasSubstr("different modes count steps of their own"));
  EXPECT_THAT(errors(two + "last 3 steps every 2 steps"), HasSubstr("different modes"));
  EXPECT_EQ(errors(two + "every 60s"), "");
  EXPECT_EQ(errors(two + "session 60s"), "");
  EXPECT_THAT(errors(kLosses + "window: every 3 steps, when: 'across(max, value) > 1'"),
              HasSubstr("put value into an aggregate"));
}

}  // namespace
}  // namespace tocsin::rules
