#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/rules/rule_bench.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;

const double kUndefined = std::nan("");

OwnedFrame sent_gradient(FakeWorker& worker, std::int64_t step, std::vector<double> values,
                         std::uint64_t flags = 0) {
  return worker.tensors(
      Mode::train, step,
      {{"gradient/conv1.weight", std::move(values), core::Role::gradient, flags}});
}

OwnedFrame dictionary(FakeWorker& worker) {
  return worker.dictionary({{core::DictionaryType::tensor,
                             "gradient/conv1.weight",
                             core::Role::gradient,
                             core::Dtype::f32,
                             {2, 2}}});
}

TEST(ExplodingTensor, HitsAtEveryStepWithNaN) {
  RuleHarness rule("  - {use: exploding_tensor, preset: original, with: {cooldown: 0s}}");
  FakeWorker worker;
  rule.feed(sent_gradient(worker, 0, {1, kUndefined})).feed(sent_gradient(worker, 1, {1, 2}));
  rule.feed(sent_gradient(worker, 2, {kUndefined, 2}));
  const auto issues = rule.firing();
  ASSERT_EQ(issues.size(), 2U);
  EXPECT_EQ(issues[0].step, 0);
  EXPECT_EQ(issues[1].step, 2);
  EXPECT_EQ(issues[1].evidence.occurrences, 2U);
}

TEST(ExplodingTensor, GivesThePublishedEventIdAndIssueKey) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker worker;
  rule.feed(worker.start())
      .feed(dictionary(worker))
      .feed(sent_gradient(worker, 412, {kUndefined, 1, 2, 3}));
  const auto issues = rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].params_hash, "9e6014ae63e4a968");
  EXPECT_EQ(issues[0].event_id, "iss_6c5duorosylmw5zjzjdy55lrk5");
  EXPECT_EQ(core::issue_key(issues[0].labels), "zupjkayr7ead6ilp76aiztqoiy");
  EXPECT_EQ(core::fingerprint(issues[0].labels), "0a6939d3abd4cadf");
}

TEST(ExplodingTensor, SaysWhatItSaw) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker worker;
  rule.feed(dictionary(worker)).feed(sent_gradient(worker, 6, {1, -8, 2, 3}));
  rule.feed(worker.tensors(
      Mode::train, 7,
      {{"other", {kUndefined}}, {"gradient/conv1.weight", {kUndefined, HUGE_VAL, 2, 3}}}));
  const auto issues = rule.firing();
  ASSERT_EQ(issues.size(), 2U);
  const core::Issue& issue = issues[1];
  EXPECT_EQ(issue.summary,
            "gradient/conv1.weight has 2 of 4 values that are not finite (1 NaN, 1 +Inf, 0 -Inf) "
            "at train step 7 on worker_0.");
  EXPECT_NE(issue.description.find("largest magnitude was 8 at step 6"), std::string::npos);
  EXPECT_EQ(issue.severity, core::Severity::error);
  EXPECT_EQ(issue.evidence.observed.value, 2);
  EXPECT_EQ(issue.evidence.affected.hit, 2U);
  EXPECT_EQ(issue.evidence.affected.evaluated, 2U);
  ASSERT_TRUE(issue.evidence.tensor.has_value());
  EXPECT_EQ(issue.evidence.tensor->collection, "gradients");
  EXPECT_EQ(issue.evidence.tensor->shape, (std::vector<std::int64_t>{2, 2}));
  ASSERT_EQ(issue.evidence.data_refs.size(), 1U);
  EXPECT_EQ(issue.evidence.data_refs[0].partition, 3);
  EXPECT_EQ(issue.evidence.data_refs[0].first, 2);
  EXPECT_EQ(issue.labels.get("tensor"), "gradient/conv1.weight");
}

TEST(ExplodingTensor, SpeaksOfAHashUntilTheNameIsKnown) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker worker;
  rule.feed(sent_gradient(worker, 0, {kUndefined}));
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_EQ(rule.firing()[0].labels.get("tensor"), "3c1ad644d40dd75a");
}

TEST(ExplodingTensor, LooksAtNaNOnlyWhenAsked) {
  RuleHarness rule = RuleHarness::of("exploding_tensor", "{only_nan: true}");
  FakeWorker worker;
  rule.feed(sent_gradient(worker, 0, {HUGE_VAL, -HUGE_VAL}));
  EXPECT_TRUE(rule.firing().empty());
  rule.feed(sent_gradient(worker, 1, {HUGE_VAL, kUndefined}));
  EXPECT_EQ(rule.firing().size(), 1U);
}

TEST(ExplodingTensor, ForgivesGradientsOfASkippedStep) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker worker;
  rule.feed(sent_gradient(worker, 0, {kUndefined}, core::meta::kOptimizerSkipped));
  EXPECT_TRUE(rule.firing().empty());
  RuleHarness strict = RuleHarness::of("exploding_tensor", "{ignore_skipped_steps: false}");
  FakeWorker again;
  strict.feed(sent_gradient(again, 0, {kUndefined}, core::meta::kOptimizerSkipped));
  EXPECT_EQ(strict.firing().size(), 1U);
}

TEST(ExplodingTensor, LooksAtLoggedValuesToo) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker worker;
  rule.feed(worker.dictionary({{core::DictionaryType::scalar, "loss", core::Role::loss}}));
  rule.feed(worker.scalars(Mode::train, {{"loss", 0, 2.0}, {"loss", 1, kUndefined}}));
  const auto issues = rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].labels.get("metric"), "loss");
  EXPECT_EQ(issues[0].summary, "loss became NaN at train step 1 on worker_0.");
}

TEST(ExplodingTensor, IgnoresIntegersAndEmptyTensors) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker worker;
  core::SummaryRow integer;
  integer.name = 5;
  integer.count = 3;
  integer.nan = 1;  // nonsense from a broken producer
  integer.meta = core::meta::make(core::Dtype::i64, core::Role::weight);
  core::SummaryRow empty;
  empty.name = 6;
  empty.meta = core::meta::make(core::Dtype::f32, core::Role::weight);
  rule.feed(worker.summary(Mode::train, 0, {integer, empty}));
  EXPECT_TRUE(rule.firing().empty());
  EXPECT_EQ(rule.rule_state(), "");
}

TEST(ExplodingTensor, ResolvesAfterThreeFiniteSteps) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker worker;
  rule.feed(sent_gradient(worker, 0, {kUndefined}));
  for (int step = 1; step <= 2; ++step) rule.feed(sent_gradient(worker, step, {1}));
  EXPECT_TRUE(rule.resolved().empty());
  rule.feed(sent_gradient(worker, 3, {1}));
  ASSERT_EQ(rule.resolved().size(), 1U);
  EXPECT_EQ(rule.resolved()[0].resolution, core::Resolution::recovered);
  EXPECT_EQ(rule.resolved()[0].labels, rule.firing()[0].labels);
  EXPECT_NE(rule.resolved()[0].event_id, rule.firing()[0].event_id);
  EXPECT_EQ(rule.resolved()[0].summary, rule.firing()[0].summary) << "what was found, again";
  EXPECT_EQ(rule.resolved()[0].step, rule.firing()[0].step);
  EXPECT_EQ(rule.resolved()[0].recommendation, rule.firing()[0].recommendation);
  EXPECT_EQ(rule.resolved()[0].evidence.threshold->value,
            rule.firing()[0].evidence.threshold->value);
  EXPECT_TRUE(rule.resolved()[0].ending->summary.starts_with("Back to normal"));
  EXPECT_GT(rule.resolved()[0].ending->step, rule.firing()[0].step);
}

TEST(ExplodingTensor, WhatCannotBeHitIsNotApplicable) {
  RowBench rule("exploding_tensor");
  const TensorValues counts{"ids", {1, 2}, Role::input, 0, core::Dtype::i64};
  EXPECT_EQ(rule.judge(0, counts), "not_applicable") << "integers, finite as they are";
  TensorValues flags{"mask", {1, 0}, Role::input, 0, core::Dtype::boolean};
  EXPECT_EQ(rule.judge(1, flags), "not_applicable");
  const TensorValues skipped{"g", {1, 2}, Role::gradient, core::meta::kOptimizerSkipped};
  EXPECT_EQ(rule.judge(2, skipped), "not_applicable") << "a finite gradient of a skipped step";
  EXPECT_EQ(rule.judge(3, TensorValues{"w", {1, 2}, Role::weight, core::meta::kOptimizerSkipped}),
            "ok");
  RowBench all("exploding_tensor", "{ignore_skipped_steps: false}");
  EXPECT_EQ(all.judge(0, skipped), "ok");
}

}  // namespace
}  // namespace tocsin::rules
