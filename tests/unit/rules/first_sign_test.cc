// First sign first: an issue says what began before it in its run and still fires.
#include "rules/engine/memory/first_sign.h"
#include "core/episode.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/rules/state_topic.h"

namespace tocsin::rules {
namespace {

using namespace stories;  // NOLINT: the stories are this file's language

const double kNotANumber = std::nan("");
const std::string kRule = "  - {use: exploding_tensor, with: {cooldown: 0s, clear_after: 1}}";

OwnedFrame loss(FakeWorker& worker, std::int64_t step, double value) {
  return worker.scalars(Mode::train, {{"loss", step, value}});
}
OwnedFrame gradients(FakeWorker& worker, std::int64_t step, double a, double b = 1) {
  return worker.tensors(Mode::train, step, {{"gradient/a", {a}}, {"gradient/b", {b}}});
}
OwnedFrame weight(FakeWorker& worker, std::int64_t step, double value) {
  return worker.tensors(Mode::train, step, {{"weight/a", {value}, core::Role::weight}});
}

OwnedFrame dictionary_of(FakeWorker& worker) {
  std::vector<Entry> entries{{core::DictionaryType::scalar, "loss", core::Role::loss},
                             {core::DictionaryType::tensor, "weight/a", core::Role::weight}};
  for (const char* one : {"a", "b", "0", "1", "2", "3", "4"}) {
    entries.push_back(
        {core::DictionaryType::tensor, std::string("gradient/") + one, Role::gradient});
  }
  return worker.dictionary(entries);
}

/// Of the newest report of a unit: units it names as its causes.
std::vector<std::string> causes(RuleHarness& rule, const std::string& tensor) {
  std::optional<std::vector<std::string>> out;
  for (const core::Issue& issue : rule.firing()) {
    if (issue.labels.get("tensor") != tensor && issue.labels.get("metric") != tensor) continue;
    out.emplace();
    for (const core::Cause& cause : issue.caused_by) out->push_back(cause.unit);
  }
  EXPECT_TRUE(out) << tensor << " has not fired";
  return out.value_or(std::vector<std::string>{});
}

using Units = std::vector<std::string>;

TEST(FirstSign, WithinAStepTheOrderIsThatOfTraining) {
  RuleHarness rule(kRule);
  FakeWorker worker;
  rule.feed(worker.start())
      .feed(dictionary_of(worker))
      .feed(loss(worker, 4, kNotANumber))
      .feed(gradients(worker, 4, kNotANumber, kNotANumber));
  rule.feed(weight(worker, 4, kNotANumber));
  const auto issues = rule.firing();
  ASSERT_EQ(issues.size(), 4U);
  EXPECT_TRUE(issues[0].caused_by.empty());
  EXPECT_EQ(issues[1].labels.get("tensor"), "gradient/b");  // backward: the last layer first
  ASSERT_EQ(issues[1].caused_by.size(), 1U);
  const core::Cause& cause = issues[1].caused_by.front();
  EXPECT_EQ(cause.event_id, issues[0].event_id);
  EXPECT_EQ(cause.issue_key, core::issue_key(issues[0].labels));
  EXPECT_EQ(cause.rule, "exploding_tensor");
  EXPECT_EQ(cause.mode, Mode::train);
  EXPECT_EQ(cause.step, 4);
  EXPECT_EQ(cause.global_step, 4);
  EXPECT_EQ(issues[2].caused_by.size(), 2U);
  EXPECT_EQ(issues[3].caused_by.size(), 3U);
  EXPECT_EQ(issues[3].caused_by.front().event_id, issues[0].event_id);
}

// One frame brings the whole step, and rules judge it one after the other: the first rule's gradients
// do not come before the second rule's activations.
TEST(FirstSign, WithinARecordTheOrderIsNotThatOfRules) {
  RuleHarness rule(
      "  - {use: exploding_tensor, with: {tensor_regex: gradient}}\n"
      "  - {use: all_zero, with: {tensor_regex: relu}}");
  FakeWorker worker;
  rule.feed(worker.start())
      .feed(worker.dictionary(
          {{core::DictionaryType::tensor, "relu_0_output_0", core::Role::activation_out},
           {core::DictionaryType::tensor, "relu_1_output_0", core::Role::activation_out},
           {core::DictionaryType::tensor, "gradient/a", Role::gradient},
           {core::DictionaryType::tensor, "gradient/b", Role::gradient}}))
      .feed(worker.tensors(Mode::train, 4,
                           {{"gradient/a", {kNotANumber}},
                            {"gradient/b", {kNotANumber}},
                            {"relu_0_output_0", {0}, core::Role::activation_out},
                            {"relu_1_output_0", {0}, core::Role::activation_out}}));
  Units order;
  for (const core::Issue& issue : rule.firing()) {
    order.push_back(std::string(issue.labels.get("tensor")));
    EXPECT_EQ(issue.caused_by.size(), order.size() - 1);
  }
  EXPECT_EQ(order, (Units{"relu_0_output_0", "relu_1_output_0", "gradient/b", "gradient/a"}));
}

// What ends within the record still caused what came before its end, and nothing behind it.
TEST(FirstSign, WhatEndsWithinARecordEndsAtItsStep) {
  RuleHarness rule(kRule);
  FakeWorker worker;
  rule.feed(worker.start())
      .feed(worker.dictionary({{core::DictionaryType::scalar, "loss", Role::loss},
                               {core::DictionaryType::scalar, "loss_b", Role::loss},
                               {core::DictionaryType::scalar, "loss_c", Role::loss}}))
      .feed(worker.scalars(Mode::train, {{"loss", 3, kNotANumber},
                                         {"loss_b", 4, kNotANumber},
                                         {"loss", 5, 1},
                                         {"loss_c", 6, kNotANumber},
                                         {"loss", 7, kNotANumber}}));
  EXPECT_EQ(causes(rule, "loss_b"), Units{"mode=train,metric=loss,worker=worker_0"});
  EXPECT_EQ(causes(rule, "loss_c"), Units{"mode=train,metric=loss_b,worker=worker_0"});
  std::vector<std::pair<std::int64_t, core::IssueStatus>> life;
  for (const core::Issue& issue : rule.issues()) {
    if (issue.labels.get("metric") == "loss")
      life.emplace_back(*core::step_of_news(issue), issue.status);
  }
  using enum core::IssueStatus;
  EXPECT_EQ(life, (std::vector<std::pair<std::int64_t, core::IssueStatus>>{
                      {3, firing}, {5, resolved}, {7, firing}}));
}

TEST(FirstSign, PlacesAmongTensorsArePartOfTheState) {
  StateTopic topic(kRule);
  FakeWorker worker;
  topic.feed(worker.start());
  topic.feed(dictionary_of(worker));
  topic.feed(worker.tensors(Mode::train, 2, {{"gradient/a", {1}}, {"gradient/b", {1}}}));
  topic.feed(worker.tensors(Mode::train, 3, {{"gradient/b", {kNotANumber}}}));
  while (topic.piece(64)) {
  }
  topic.commit();
  topic.restart();
  topic.feed(worker.tensors(Mode::train, 3, {{"gradient/a", {kNotANumber}}}));  // the rest of it
  topic.commit();
  const std::string& told = topic.told().back();
  EXPECT_NE(told.find("gradient/a"), std::string::npos) << told;
  EXPECT_NE(told.find(" after iss_"), std::string::npos) << told;
}

TEST(FirstSign, WhateverCameEarlierInStepsCameFirst) {
  RuleHarness rule(kRule);
  FakeWorker worker;
  rule.feed(worker.start())
      .feed(dictionary_of(worker))
      .feed(weight(worker, 3, kNotANumber))
      .feed(loss(worker, 4, kNotANumber));
  EXPECT_EQ(causes(rule, "weight/a"), Units{});
  EXPECT_EQ(causes(rule, "loss"), Units{"mode=train,tensor=weight/a,worker=worker_0"});
}

TEST(FirstSign, WhatIsOverCausesNothing) {
  RuleHarness rule(kRule);
  FakeWorker worker;
  rule.feed(worker.start())
      .feed(dictionary_of(worker))
      .feed(loss(worker, 3, kNotANumber))
      .feed(loss(worker, 4, 1));
  ASSERT_EQ(rule.resolved().size(), 1U);
  EXPECT_TRUE(rule.resolved().front().caused_by.empty());
  rule.feed(gradients(worker, 5, kNotANumber));
  EXPECT_EQ(causes(rule, "gradient/a"), Units{});
}

TEST(FirstSign, LaterReportsStandWhereTheIssueBegan) {
  RuleHarness rule(kRule);
  FakeWorker worker;
  rule.feed(worker.start())
      .feed(dictionary_of(worker))
      .feed(gradients(worker, 3, kNotANumber))
      .feed(loss(worker, 4, kNotANumber));
  rule.feed(gradients(worker, 5, kNotANumber));
  EXPECT_EQ(causes(rule, "gradient/a"), Units{});
}

TEST(FirstSign, NamesThreeAtMost) {
  RuleHarness rule(kRule);
  FakeWorker worker;
  rule.feed(worker.start()).feed(dictionary_of(worker));
  for (int step = 0; step < 5; ++step) {
    rule.feed(
        worker.tensors(Mode::train, step, {{"gradient/" + std::to_string(step), {kNotANumber}}}));
  }
  EXPECT_EQ(rule.firing().back().caused_by.size(), FirstSigns::kMost);
  EXPECT_EQ(rule.firing().back().caused_by.front().event_id, rule.firing().front().event_id);
}

TEST(FirstSign, OfShadowedRulesNothingFollows) {
  RuleHarness rule(
      "  - {use: exploding_tensor, shadow: true}\n  - {use: all_zero, with: "
      "{tensor_regex: gradient}}");
  FakeWorker worker;
  rule.feed(worker.start())
      .feed(dictionary_of(worker))
      .feed(loss(worker, 3, kNotANumber))
      .feed(gradients(worker, 4, 0, 0));
  for (const core::Issue& issue : rule.firing()) {
    if (issue.shadow) continue;
    for (const core::Cause& cause : issue.caused_by) EXPECT_EQ(cause.rule, "all_zero");
  }
  EXPECT_EQ(rule.firing().back().rule, "all_zero");
}

TEST(FirstSign, TimesAndProcessesHaveNoPlaceInAStep) {
  const auto clock = read_rules_text("  - {use: stalled_training_rule}");
  EXPECT_EQ(stage_of(std::nullopt, std::nullopt, *clock.config.rules.front().program),
            std::nullopt);
  const auto spans = read_rules_text("  - {use: data_wait}");
  EXPECT_EQ(stage_of(std::nullopt, std::nullopt, *spans.config.rules.front().program),
            std::nullopt);
  const auto series = read_rules_text("  - {use: loss_not_decreasing}");
  EXPECT_TRUE(stage_of(std::nullopt, std::nullopt, *series.config.rules.front().program));
}

TEST(FirstSign, SurvivesARestart) {
  StateTopic topic(kRule);
  FakeWorker worker;
  topic.feed(worker.start());
  topic.feed(dictionary_of(worker));
  topic.feed(loss(worker, 3, kNotANumber));
  while (topic.piece(64)) {
  }
  topic.commit();
  topic.restart();
  topic.feed(gradients(worker, 4, kNotANumber));
  topic.commit();
  const std::string& told = topic.told().back();
  EXPECT_NE(told.find("gradient/a"), std::string::npos) << told;
  EXPECT_NE(told.find(" after iss_"), std::string::npos) << told;
}

}  // namespace
}  // namespace tocsin::rules
