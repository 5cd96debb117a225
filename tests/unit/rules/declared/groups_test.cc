// Declarative rules over more than one row: across workers and tensors, steps, several selections,
// samples of nodes. The same whatever the order in which workers' records come.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/rule_harness.h"
#include "tests/unit/rules/node_fixture.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;
using ::testing::HasSubstr;

const std::string kStraggler =
    "  - {name: straggler, select: step(), by: [run_uid], clear_after: 1, for: 2, when: "
    "'across(max, "
    "duration) > 2 * across(mean, duration)', evidence: 'slowest {argmax_worker(duration)}'}";

struct Team {
  RuleHarness rule;
  std::vector<FakeWorker> workers;
  Team(const std::string& rules, std::uint32_t size) : rule(rules) {
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      workers.emplace_back("digits", "exploding", rank, size);
      rule.feed(workers.back().dictionary(
          {{core::DictionaryType::worker, "worker_" + std::to_string(rank)},
           {core::DictionaryType::tensor, "g", Role::gradient},
           {core::DictionaryType::scalar, "loss", Role::loss}}));
    }
  }
  /// One step of all workers, in this order; seconds of each.
  void step(std::int64_t step, const std::vector<std::size_t>& order,
            const std::vector<double>& seconds) {
    for (const std::size_t w : order) {
      workers[w].step_time = static_cast<std::int64_t>(seconds[w] * kSecond);
      rule.feed(workers[w].step_end(Mode::train, step));
    }
  }
};

TEST(DeclaredGroups, AStragglerIsFoundWhateverTheOrder) {
  std::vector<std::string> ids;
  for (const auto& order : std::vector<std::vector<std::size_t>>{{0, 1, 2}, {2, 0, 1}, {1, 2, 0}}) {
    Team team(kStraggler, 3);
    team.step(0, order, {1, 1, 1});
    team.step(1, order, {1, 9, 1});  // 9 > 2 × 11/3
    EXPECT_TRUE(team.rule.firing().empty());
    team.step(2, order, {1, 9, 1});
    ASSERT_EQ(team.rule.firing().size(), 1U);
    const core::Issue issue = team.rule.firing()[0];
    EXPECT_THAT(issue.summary, HasSubstr("slowest worker_1"));
    EXPECT_EQ(issue.step, 2);
    EXPECT_EQ(issue.labels.get("worker"), "");
    EXPECT_EQ(issue.evidence.observed.value, 9);
    ids.push_back(team.rule.ids().front());
    team.step(3, order, {1, 7.9, 1});  // 7.9 < 2 × 9.9/3? no: 6.6
    EXPECT_TRUE(team.rule.resolved().empty());
    team.step(4, order, {1, 3, 1});  // 3 < 2 × 5/3
    EXPECT_EQ(team.rule.resolved().size(), 1U);
  }
  EXPECT_EQ(ids[0], ids[1]);
  EXPECT_EQ(ids[0], ids[2]);
}

TEST(DeclaredGroups, ASlowStepOfOneWorker) {
  Team team("  - {name: slow, select: 'step(){worker=\"worker_1\"}', when: 'duration > 2s'}", 2);
  team.step(0, {0, 1}, {9, 1});
  EXPECT_TRUE(team.rule.firing().empty());
  team.step(1, {0, 1}, {1, 2.5});
  ASSERT_EQ(team.rule.firing().size(), 1U);
  EXPECT_EQ(team.rule.firing()[0].labels.get("worker"), "worker_1");
  EXPECT_EQ(team.rule.firing()[0].evidence.observed.value, 2.5);
}

// Loss of each worker at each step; the fold that the rule makes.
std::vector<std::int64_t> folded_at(const std::string& when, const std::string& by,
                                    const std::vector<std::vector<double>>& steps) {
  Team team("  - {name: r, select: 'metric(\"loss\")', by: " + by + ", when: '" + when +
                "', clear_after: 1}",
            2);
  std::vector<std::int64_t> out;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    for (std::size_t w = 0; w < 2; ++w) {
      team.rule.feed(team.workers[w].scalars(
          Mode::train, {{"loss", static_cast<std::int64_t>(s), steps[s][w]}}));
    }
    team.step(static_cast<std::int64_t>(s), {0, 1}, {1, 1});
    if (team.rule.firing().size() > team.rule.resolved().size()) {
      out.push_back(static_cast<std::int64_t>(s));
    }
  }
  return out;
}

TEST(DeclaredGroups, FoldsWorkersInEveryWay) {
  using Steps = std::vector<std::int64_t>;
  const std::vector<std::vector<double>> losses{{1, 1}, {1, 3}, {4, 4}};
  EXPECT_EQ(folded_at("across(spread, value) == 2", "[metric]", losses), (Steps{1}));
  EXPECT_EQ(folded_at("across(min, value) == 4", "[metric]", losses), (Steps{2}));
  EXPECT_EQ(folded_at("across(mean, value) == 2", "[metric]", losses), (Steps{1}));
  EXPECT_EQ(folded_at("across(std, value) == 1", "[run_uid]", losses), (Steps{1}));
  EXPECT_EQ(folded_at("across(count, value) == 2", "[run_uid]", losses), (Steps{0, 1, 2}));
  // What is not finite is left out, whoever has it.
  const std::vector<std::vector<double>> odd{{1, HUGE_VAL}, {HUGE_VAL, 1}, {1, std::nan("")}};
  EXPECT_EQ(folded_at("across(mean, value) == 1", "[metric]", odd), (Steps{0, 1, 2}));
  EXPECT_EQ(folded_at("across(max, value) == 1", "[metric]", odd), (Steps{0, 1, 2}));
  EXPECT_EQ(folded_at("across(std, value) == 0", "[metric]", odd), (Steps{0, 1, 2}));
  EXPECT_EQ(folded_at("across(count, value) == 1", "[metric]", odd), (Steps{0, 1, 2}));
  // Of windows that each worker has for itself: the mean of two steps.
  Team team(
      "  - {name: r, select: 'metric(\"loss\")', by: [metric], window: last 2 steps, when: "
      "'across(max, mean(value)) > 3'}",
      2);
  for (std::int64_t s = 0; s < 2; ++s) {
    for (FakeWorker& worker : team.workers) {
      team.rule.feed(worker.scalars(Mode::train, {{"loss", s, s == 0 ? 3.0 : 4.0}}));
    }
    team.step(s, {0, 1}, {1, 1});
  }
  ASSERT_EQ(team.rule.firing().size(), 1U);
  EXPECT_EQ(team.rule.firing()[0].labels.get("metric"), "loss");
  EXPECT_EQ(team.rule.firing()[0].evidence.observed.value, 3.5);
}

TEST(DeclaredGroups, FoldsTensorsOfOneWorker) {
  Team team(
      "  - {name: r, select: 'collection(\"gradients\")', by: [worker], when: 'across(max, l2) > "
      "10 "
      "* across(min, l2)'}",
      1);
  team.rule.feed(team.workers[0].tensors(Mode::train, 0, {{"g", {1, 0}}, {"h", {20, 0}}}));
  EXPECT_TRUE(team.rule.firing().empty());  // the step may go on
  team.step(0, {0}, {1});
  ASSERT_EQ(team.rule.firing().size(), 1U);
  EXPECT_EQ(team.rule.firing()[0].labels.get("worker"), "worker_0");
  EXPECT_EQ(team.rule.firing()[0].labels.get("tensor"), "");
}

TEST(DeclaredGroups, NamesThatDifferMustBeFolded) {
  const auto errors = [](const std::string& when) {
    return read_rules_text("  - {name: r, select: 'metric(\"a\")', by: [run_uid], when: '" + when +
                           "'}")
        .errors;
  };
  EXPECT_THAT(errors("value > 1"), HasSubstr("value differs between metrics"));
  EXPECT_THAT(errors("across(mox, value) > 1"), HasSubstr("did you mean max?"));
  EXPECT_THAT(errors("across(max, across(max, value)) > 1"), HasSubstr("cannot stand inside"));
}

TEST(DeclaredGroups, TwoSelectionsAreJudgedAtEachPointOfEither) {
  RuleHarness rule(
      "  - {name: eval_gap, let: {t: 'metric(\"loss\"){mode=\"train\"}', e: "
      "'metric(\"loss\"){mode=\"eval\"}'}, window: since start, clear_after: 1, when: "
      "'ewma(e.value, 0.5) > 1.2 * ewma(t.value, 0.5)', for: 2}");
  FakeWorker worker;
  rule.feed(worker.dictionary({{core::DictionaryType::scalar, "loss", Role::loss}}));
  rule.feed(worker.scalars(Mode::train, {{"loss", 0, 1}}));  // the other is not there yet
  rule.feed(worker.scalars(Mode::eval, {{"loss", 0, 1.3}}));
  EXPECT_TRUE(rule.firing().empty());
  rule.feed(worker.scalars(Mode::train, {{"loss", 1, 1}}));  // second hit in a row
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_EQ(rule.firing()[0].labels.get("metric"), "loss");
  EXPECT_EQ(rule.firing()[0].labels.get("worker"), "worker_0");
  EXPECT_EQ(rule.firing()[0].evidence.observed.name, "ewma(e.value, 0.5)");
  rule.feed(worker.scalars(Mode::eval, {{"loss", 1, 0.9}}));  // ewma 1.1
  EXPECT_EQ(rule.resolved().size(), 1U);
}

TEST(DeclaredGroups, TheSameStepOfTwoModesIsTwoEvents) {
  RuleHarness rule(
      "  - {name: r, clear_after: 1, let: {a: 'metric(\"a\")', b: 'metric(\"b\"){mode=\"eval\"}'}, "
      "when: 'a.value > b.value'}");
  FakeWorker worker;
  rule.feed(worker.dictionary({{core::DictionaryType::scalar, "a", Role::metric},
                               {core::DictionaryType::scalar, "b", Role::metric}}));
  rule.feed(worker.scalars(Mode::eval, {{"b", 0, 1, Role::metric}}));
  rule.feed(worker.scalars(Mode::train, {{"a", 3, 2, Role::metric}}));
  rule.feed(worker.scalars(Mode::train, {{"a", 4, 0, Role::metric}}));
  rule.feed(worker.scalars(Mode::eval, {{"a", 3, 2, Role::metric}}));
  ASSERT_EQ(rule.firing().size(), 2U);
  ASSERT_EQ(rule.resolved().size(), 1U);
  EXPECT_EQ(rule.firing()[0].step, rule.firing()[1].step);
  EXPECT_NE(rule.firing()[0].event_id, rule.firing()[1].event_id);
}

TEST(DeclaredGroups, SelectionsOfTheSameModesAreAUnitPerMode) {
  const RulesConfig config =
      read_rules_text(
          "  - {name: r, let: {a: 'metric(\"a\")', b: 'metric(\"b\")'}, when: 'a.value > b.value'}")
          .config;
  EXPECT_EQ(config.rules[0].version, "2");
  RuleHarness rule(config, {});
  FakeWorker worker;
  rule.feed(worker.dictionary({{core::DictionaryType::scalar, "a", Role::metric},
                               {core::DictionaryType::scalar, "b", Role::metric}}));
  rule.feed(worker.scalars(Mode::eval, {{"b", 0, 1, Role::metric}}));
  rule.feed(worker.scalars(Mode::train, {{"a", 3, 2, Role::metric}}));
  EXPECT_TRUE(rule.firing().empty());  // no b of training is known
  rule.feed(worker.scalars(Mode::eval, {{"a", 1, 2, Role::metric}}));
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_EQ(rule.firing()[0].labels.get("mode"), "eval");
}

TEST(DeclaredGroups, AShareOfTheStepIsSpansAndStepsTogether) {
  RuleHarness rule(
      "  - {name: waits, let: {wait: 'span(\"data_wait|fetch\")', all: step()}, when: "
      "'wait.duration > 50% * all.duration', clear_after: 1, evidence: 'waits {wait.duration} s'}");
  FakeWorker worker;
  rule.feed(worker.dictionary({{core::DictionaryType::span_name, "data_wait"},
                               {core::DictionaryType::span_name, "fetch"},
                               {core::DictionaryType::span_name, "forward"}}));
  worker.step_time = 2 * kSecond;
  rule.feed(worker.spans(Mode::train, 0, {{"data_wait", 0.7}, {"fetch", 0.3}, {"forward", 9}}));
  rule.feed(worker.step_end(Mode::train, 0));  // 1.0 of 2 s: exactly half
  EXPECT_TRUE(rule.firing().empty());
  rule.feed(worker.spans(Mode::train, 1, {{"data_wait", 0.8}, {"fetch", 0.3}}));
  EXPECT_TRUE(rule.firing().empty());  // the step may go on
  rule.feed(worker.step_end(Mode::train, 1));
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_EQ(rule.firing()[0].step, 1);
  EXPECT_EQ(rule.firing()[0].labels.get("worker"), "worker_0");
  EXPECT_THAT(rule.firing()[0].summary, HasSubstr("waits 1.1 s"));
}

TEST(DeclaredGroups, SpansOfANameAreSummedOverTheirStep) {
  Team team(
      "  - {name: slow, select: 'span(\"load.*\")', when: 'duration > 1s and count == 2', "
      "clear_after: 1}",
      2);
  for (FakeWorker& worker : team.workers) {
    team.rule.feed(worker.dictionary(
        {{core::DictionaryType::span_name, "load_a"}, {core::DictionaryType::span_name, "save"}}));
  }
  team.rule.feed(
      team.workers[0].spans(Mode::train, 0, {{"load_a", 0.6}, {"save", 5}, {"save", 5}}));
  team.rule.feed(team.workers[0].spans(Mode::train, 0, {{"load_a", 0.6}}));
  team.rule.feed(team.workers[1].spans(Mode::train, 0, {{"load_a", 2}}));
  EXPECT_TRUE(team.rule.firing().empty());  // the step may go on
  team.step(0, {0, 1}, {1, 1});
  ASSERT_EQ(team.rule.firing().size(), 1U);
  const core::Issue issue = team.rule.firing()[0];
  EXPECT_EQ(issue.labels.get("span"), "load_a");
  EXPECT_EQ(issue.labels.get("worker"), "worker_0");
  EXPECT_EQ(issue.evidence.observed.value, 1.2);
  team.step(1, {0, 1}, {1, 1});  // without spans there is no point
  EXPECT_TRUE(team.rule.resolved().empty());
}

TEST(DeclaredGroups, FoldsSpansOverWorkers) {
  Team team(
      "  - {name: r, select: 'span(\"load\")', by: [span], when: 'across(spread, duration) > 1s', "
      "evidence: '{argmax_worker(duration)}'}",
      2);
  for (FakeWorker& worker : team.workers) {
    team.rule.feed(worker.dictionary({{core::DictionaryType::span_name, "load"}}));
  }
  team.rule.feed(team.workers[0].spans(Mode::train, 0, {{"load", 0.5}}));
  team.rule.feed(team.workers[1].spans(Mode::train, 0, {{"load", 2}}));
  team.step(0, {1, 0}, {1, 1});
  ASSERT_EQ(team.rule.firing().size(), 1U);
  EXPECT_EQ(team.rule.firing()[0].labels.get("span"), "load");
  EXPECT_THAT(team.rule.firing()[0].summary, HasSubstr("worker_1"));
}

TEST(DeclaredGroups, WhatMadeAnActivationIsALabel) {
  RuleHarness rule(
      "  - {name: r, select: 'tensor(\".*\"){op_type=\"ReLU\"}', when: 'zero == count'}");
  FakeWorker worker;
  rule.feed(worker.dictionary({{core::DictionaryType::tensor,
                                "a",
                                Role::activation_out,
                                core::Dtype::f32,
                                {},
                                R"({"op_type":"ReLU"})"},
                               {core::DictionaryType::tensor,
                                "b",
                                Role::activation_out,
                                core::Dtype::f32,
                                {},
                                R"({"op_type":"Tanh"})"}}));
  rule.feed(worker.tensors(
      Mode::train, 0, {{"a", {0, 0}, Role::activation_out}, {"b", {0, 0}, Role::activation_out}}));
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_EQ(rule.firing()[0].labels.get("tensor"), "a");
}

TEST(DeclaredGroups, TheNewestValuesOfTwoSelections) {
  RuleHarness rule(
      "  - {name: r, let: {a: 'metric(\"a\")', b: 'metric(\"b\")'}, when: 'a.value > b.value'}");
  FakeWorker worker;
  rule.feed(worker.dictionary({{core::DictionaryType::scalar, "a", Role::metric},
                               {core::DictionaryType::scalar, "b", Role::metric}}));
  rule.feed(worker.scalars(Mode::train, {{"a", 0, 2, Role::metric}, {"b", 0, 3, Role::metric}}));
  EXPECT_TRUE(rule.firing().empty());
  rule.feed(worker.scalars(Mode::train, {{"b", 1, 1, Role::metric}}));
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_EQ(rule.firing()[0].labels.get("metric"), "");
}

TEST(DeclaredGroups, SelectionsAreNamedInTheirExpressions) {
  const auto errors = [](const std::string& when) {
    return read_rules_text("  - {name: r, let: {a: 'metric(\"a\")', b: 'metric(\"b\")'}, when: '" +
                           when + "'}")
        .errors;
  };
  EXPECT_THAT(errors("value > 1"), HasSubstr("of which selection? write a.value"));
  EXPECT_THAT(errors("a.value > c.value"), HasSubstr("unknown selection c; did you mean a?"));
  EXPECT_THAT(errors("a.value > 1"), HasSubstr("looks at nothing of b"));
  EXPECT_THAT(errors("max(a.value + b.value) > 1"), HasSubstr("values of one selection"));
  EXPECT_THAT(read_rules_text("  - {name: r, let: {a: 'system(\"x\")', b: 'metric(\"b\")'}, when: "
                              "'a.value > b.value'}")
                  .errors,
              HasSubstr("samples of a node stand alone"));
}

struct IdleNode {
  RuleHarness rule;
  FakeWorker agent{"digits", "exploding", core::kNodeAgentRank};
  std::int64_t time = kStart - kStart % kMinute;

  explicit IdleNode(const std::string& rules) : rule(rules) {
    agent.header.worker = core::name_hash("node-7");
    rule.feed(agent.dictionary({{core::DictionaryType::node, "node-7"},
                                {core::DictionaryType::series, gpu("0")},
                                {core::DictionaryType::series, gpu("1")}}));
  }
  void sweep(double first, double second) {
    rule.feed(agent.system({{gpu("0"), time, first}, {gpu("1"), time, second}}));
    time += 10 * kSecond;
  }
};
const std::string kIdle =
    "  - {name: gpu_idle, select: 'system(\"hw.gpu.utilization\")', by: [node, device], window: "
    "every "
    "60s, when: 'mean(value) < 20%', severity: info}";

TEST(DeclaredGroups, EachDeviceOfANodeInPiecesOfTime) {
  IdleNode node(kIdle);
  for (int i = 0; i < 6; ++i) node.sweep(0.9, 0.1);
  EXPECT_TRUE(node.rule.firing().empty());  // the minute may go on
  node.sweep(0.9, 0.9);
  ASSERT_EQ(node.rule.firing().size(), 1U);
  const core::Issue issue = node.rule.firing()[0];
  EXPECT_EQ(issue.labels.get("node"), "node-7");
  EXPECT_EQ(issue.labels.get("device"), "1");
  EXPECT_EQ(issue.severity, core::Severity::info);
  EXPECT_NEAR(issue.evidence.observed.value, 0.1, 1e-12);
  EXPECT_EQ(issue.evidence.window.clock, "time");
  EXPECT_EQ(issue.evidence.window.last - issue.evidence.window.first, 60 * kSecond);
}

TEST(DeclaredGroups, WhatIsOpenIsJudgedWhenTheRunEnds) {
  IdleNode node(kIdle);
  node.sweep(0.9, 0.1);
  node.rule.feed(FakeWorker().end());
  EXPECT_EQ(node.rule.firing().size(), 1U);
}

TEST(DeclaredGroups, ExactlyTheLimitIsNotBelowIt) {
  IdleNode node(kIdle);
  for (int i = 0; i < 7; ++i) node.sweep(0.2, 0.2);
  EXPECT_TRUE(node.rule.firing().empty());
}

TEST(DeclaredGroups, ANewestSampleNeedsNoWindow) {
  IdleNode node(
      "  - {name: hot, select: 'system(\"hw.gpu.utilization\"){device=\"0\"}', when: 'value "
      "> 95%'}");
  node.sweep(0.9, 0.99);
  EXPECT_TRUE(node.rule.firing().empty());
  node.sweep(0.96, 0.1);
  EXPECT_EQ(node.rule.firing().size(), 1U);
  EXPECT_THAT(read_rules_text("  - {name: r, select: 'system(\"a\")', window: last 3 steps, when: "
                              "'mean(value) > 1'}")
                  .errors,
              HasSubstr("samples of a node have no steps"));
}

}  // namespace
}  // namespace tocsin::rules
