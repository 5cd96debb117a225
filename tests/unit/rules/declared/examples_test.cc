// The examples of docs/custom-rules.md, read from the page: each of them fires when it should and is quiet
// before.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "tests/support/rule_harness.h"
#include "tests/unit/rules/node_fixture.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;

std::string page() {
  std::ifstream in("docs/custom-rules.md");
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string block() {
  const std::string text = page();
  const std::size_t from = text.find("```yaml\n") + 8;
  return text.substr(from, text.find("```", from) - from);
}

// The line of the example with this name, as a list of rules.
std::string example(const std::string& name) {
  std::istringstream lines(block());
  for (std::string line; std::getline(lines, line);) {
    if (line.find("name: " + name + ",") != std::string::npos) return "  " + line;
  }
  ADD_FAILURE() << "no example " << name;
  return {};
}

struct Example {
  RuleHarness rule;
  FakeWorker worker;
  explicit Example(const std::string& name) : rule(example(name)) {
    rule.feed(worker.dictionary({{core::DictionaryType::scalar, "loss", Role::loss},
                                 {core::DictionaryType::scalar, "accuracy", Role::metric},
                                 {core::DictionaryType::tensor, "g", Role::gradient}}));
  }
  void scalar(Mode mode, const std::string& name, std::int64_t step, double value) {
    rule.feed(worker.scalars(mode, {{name, step, value}}));
  }
};

TEST(DeclaredExamples, TheWholePageIsRead) {
  std::string rules;
  std::istringstream lines(block());
  for (std::string line; std::getline(lines, line);) rules += "  " + line + "\n";
  const ReadRules read = read_rules_text(rules);
  EXPECT_EQ(read.errors, "");
  EXPECT_EQ(read.config.rules.size(), 7U);
}

TEST(DeclaredExamples, LossPlateau) {
  Example falling("loss_plateau");
  Example flat("loss_plateau");
  for (std::int64_t step = 0; step < 203; ++step) {
    falling.scalar(Mode::train, "loss", step, 5 - 0.01 * static_cast<double>(step));
    flat.scalar(Mode::train, "loss", step, 2);
    if (step == 200) {
      EXPECT_TRUE(flat.rule.firing().empty());  // two hits so far
    }
  }
  EXPECT_TRUE(falling.rule.firing().empty());
  ASSERT_EQ(flat.rule.firing().size(), 1U);
  EXPECT_EQ(flat.rule.firing()[0].step, 201);
}

TEST(DeclaredExamples, GradSpike) {
  Example one("grad_spike");
  for (std::int64_t step = 0; step < 60; ++step) {
    one.rule.feed(one.worker.tensors(Mode::train, step, {{"g", {step == 59 ? 11.0 : 1.0, 0}}}));
    if (step == 58) {
      EXPECT_TRUE(one.rule.firing().empty());
    }
  }
  ASSERT_EQ(one.rule.firing().size(), 1U);
  EXPECT_EQ(one.rule.firing()[0].summary, "g: norm 11, usual 1.");
}

TEST(DeclaredExamples, NanAny) {
  Example one("nan_any");
  one.rule.feed(one.worker.tensors(Mode::eval, 0, {{"g", {std::nan("")}}}));
  one.rule.feed(one.worker.tensors(Mode::train, 0, {{"g", {1}}}));
  EXPECT_TRUE(one.rule.firing().empty());
  one.rule.feed(one.worker.tensors(Mode::train, 1, {{"g", {1, std::nan("")}}}));
  ASSERT_EQ(one.rule.firing().size(), 1U);
  EXPECT_EQ(one.rule.firing()[0].severity, core::Severity::critical);
}

TEST(DeclaredExamples, EvalGap) {
  Example one("eval_gap");
  for (std::int64_t step = 0; step < 5; ++step) one.scalar(Mode::train, "loss", step, 1);
  one.scalar(Mode::eval, "loss", 0, 1.2);  // not more than 1.2 times
  EXPECT_TRUE(one.rule.firing().empty());
  one.scalar(Mode::eval, "loss", 1, 2);
  EXPECT_TRUE(one.rule.firing().empty());
  one.scalar(Mode::eval, "loss", 2, 2);
  EXPECT_EQ(one.rule.firing().size(), 1U);
}

TEST(DeclaredExamples, Straggler) {
  RuleHarness rule(example("straggler"));
  FakeWorker workers[3] = {FakeWorker("digits", "exploding", 0, 3),
                           FakeWorker("digits", "exploding", 1, 3),
                           FakeWorker("digits", "exploding", 2, 3)};
  for (std::int64_t step = 0; step < 6; ++step) {
    EXPECT_TRUE(rule.firing().empty()) << step;
    for (std::size_t w = 0; w < 3; ++w) {
      workers[w].step_time = (w == 2 && step > 0 ? 9 : 1) * kSecond;
      rule.feed(workers[w].step_end(Mode::train, step));
    }
  }
  EXPECT_EQ(rule.firing().size(), 1U);
}

TEST(DeclaredExamples, GpuIdle) {
  RuleHarness rule(example("gpu_idle"));
  FakeWorker agent("digits", "exploding", core::kNodeAgentRank);
  agent.header.worker = core::name_hash("node-7");
  rule.feed(agent.dictionary(
      {{core::DictionaryType::node, "node-7"}, {core::DictionaryType::series, gpu("0")}}));
  std::int64_t time = kStart - kStart % kMinute;
  const auto minute = [&](double share) {
    for (int i = 0; i < 6; ++i, time += 10 * kSecond) {
      rule.feed(agent.system({{gpu("0"), time, share}}));
    }
  };
  minute(0.8);
  minute(0.1);
  EXPECT_TRUE(rule.firing().empty());
  minute(0.8);
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_EQ(rule.firing()[0].severity, core::Severity::info);
}

TEST(DeclaredExamples, StuckBest) {
  Example one("stuck_best");
  for (std::int64_t step = 0; step <= 20; ++step) {
    one.scalar(Mode::eval, "accuracy", step, step == 0 ? 0.9 : 0.8);
  }
  EXPECT_TRUE(one.rule.firing().empty());
  one.scalar(Mode::eval, "accuracy", 21, 0.8);
  EXPECT_EQ(one.rule.firing().size(), 1U);
}

}  // namespace
}  // namespace tocsin::rules
