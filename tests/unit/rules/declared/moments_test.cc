// A moment of an issue is told once, however many points of a step a declarative rule judges.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/support/rule_harness.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;

TEST(DeclaredMoments, TwoSelectionsThatHitInOneStepAreOneReportOfIt) {
  RuleHarness rule(
      "  - {name: r, let: {a: 'metric(\"a\")', b: 'metric(\"b\")'}, when: 'a.value + b.value > 1', "
      "cooldown: 0s}");
  FakeWorker worker;
  rule.feed(worker.dictionary({{core::DictionaryType::scalar, "a", Role::metric},
                               {core::DictionaryType::scalar, "b", Role::metric}}));
  for (std::int64_t step = 0; step < 3; ++step) {
    rule.feed(
        worker.scalars(Mode::train, {{"a", step, 2, Role::metric}, {"b", step, 3, Role::metric}}));
    rule.feed(worker.step_end(Mode::train, step));
  }
  const auto& told = rule.firing();
  ASSERT_EQ(told.size(), 3U);
  std::set<std::string> ids;
  for (const core::Issue& issue : told) ids.insert(issue.event_id);
  EXPECT_EQ(ids.size(), 3U);
  // In step 0 the second point is the first of both; then both points of a step count.
  EXPECT_EQ(told[2].step, 2);
  EXPECT_EQ(told[2].evidence.occurrences, 4U);
}

TEST(DeclaredMoments, WhatBeginsInAStepDoesNotEndInIt) {
  // Three points of a step are judged: hit, ok, hit. Told so, two beginnings would have one id.
  RuleHarness rule(
      "  - {name: r, let: {a: 'metric(\"a\")', b: 'metric(\"b\")', c: 'metric(\"c\")'}, "
      "when: 'a.value + b.value + c.value > 1', clear_after: 1}");
  FakeWorker worker;
  rule.feed(worker.dictionary({{core::DictionaryType::scalar, "a", Role::metric},
                               {core::DictionaryType::scalar, "b", Role::metric},
                               {core::DictionaryType::scalar, "c", Role::metric}}));
  const auto log = [&](std::int64_t step, double a, double b, double c) {
    rule.feed(worker.scalars(Mode::train, {{"a", step, a, Role::metric},
                                           {"b", step, b, Role::metric},
                                           {"c", step, c, Role::metric}}));
    rule.feed(worker.step_end(Mode::train, step));
  };
  log(0, 0, 0, 0);
  log(1, 5, -5, 5);
  log(2, 0, -5, 0);
  std::set<std::string> ids;
  const auto firing = rule.firing();
  const auto resolved = rule.resolved();
  for (const auto* all : {&firing, &resolved}) {
    for (const core::Issue& issue : *all) EXPECT_TRUE(ids.insert(issue.event_id).second);
  }
  ASSERT_EQ(firing.size(), 1U);
  EXPECT_EQ(firing[0].step, 1);
  ASSERT_EQ(resolved.size(), 1U);
  EXPECT_EQ(resolved[0].ending->step, 2);
}

}  // namespace
}  // namespace tocsin::rules
