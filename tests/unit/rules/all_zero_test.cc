#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/rule_harness.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;

TEST(AllZero, RefusesToStartWithoutASelector) {
  EXPECT_NE(read_rules_text("  - all_zero").errors.find("needs collection_names or tensor_regex"),
            std::string::npos);
}

TEST(AllZero, FiresWhenEveryValueIsZero) {
  RuleHarness rule = RuleHarness::of("all_zero", "{collection_names: [biases]}");
  FakeWorker worker;
  rule.feed(worker.tensors(Mode::train, 0,
                           {{"b1", {0, -0.0, 0}, Role::bias},
                            {"b2", {0, 1e-30, 0}, Role::bias},
                            {"w", {0, 0}, Role::weight}}));
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_EQ(rule.firing()[0].evidence.observed.value, 100);
}

TEST(AllZero, CountsAShareWhenTheThresholdIsLower) {
  RuleHarness rule = RuleHarness::of("all_zero", "{collection_names: [weights], threshold: 50}");
  FakeWorker worker;
  rule.feed(worker.tensors(Mode::train, 0, {{"w", {0, 1, 2}, Role::weight}}));
  EXPECT_TRUE(rule.firing().empty());
  rule.feed(worker.tensors(Mode::train, 1, {{"w", {0, 0, 2, 3}, Role::weight}}));
  EXPECT_EQ(rule.firing().size(), 1U);
}

TEST(AllZero, NaNIsNotZeroAndNothingIsNothing) {
  RuleHarness rule = RuleHarness::of("all_zero", "{collection_names: [weights]}");
  FakeWorker worker;
  core::SummaryRow empty;
  empty.name = 1;
  empty.meta = core::meta::make(core::Dtype::f32, Role::weight);
  rule.feed(worker.tensors(Mode::train, 0, {{"w", {0, std::nan("")}, Role::weight}}));
  rule.feed(worker.summary(Mode::train, 1, {empty}));
  EXPECT_TRUE(rule.firing().empty());
}

TEST(AllZero, StartsWhereToldTo) {
  RuleHarness rule = RuleHarness::of("all_zero", "{collection_names: [biases], start_step: 1}");
  FakeWorker worker;
  rule.feed(worker.tensors(Mode::train, 0, {{"b", {0, 0}, Role::bias}}));
  EXPECT_TRUE(rule.firing().empty());
  rule.feed(worker.tensors(Mode::train, 1, {{"b", {0, 0}, Role::bias}}));
  EXPECT_EQ(rule.firing().size(), 1U);
}

TEST(AllZero, LooksAtALossOfZero) {
  RuleHarness rule = RuleHarness::of("all_zero", "{collection_names: [losses]}");
  FakeWorker worker;
  rule.feed(worker.scalars(Mode::train, {{"loss", 0, 0.0}}));
  EXPECT_EQ(rule.firing().size(), 1U);
}

TEST(AllZero, RefusesAThresholdOfNothing) {
  EXPECT_NE(read_rules_text("  - {use: AllZero, with: {collection_names: [w], threshold: 0}}")
                .errors.find("threshold"),
            std::string::npos);
}

}  // namespace
}  // namespace tocsin::rules
