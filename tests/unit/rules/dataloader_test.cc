#include <gtest/gtest.h>

#include "tests/unit/rules/node_fixture.h"
#include "tests/unit/rules/timed_fixture.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;

constexpr std::int64_t kBegin = kStart - kStart % kMinute;

/// A node with some cores, and workers on it whose loading processes report themselves.
struct Loaders {
  RuleHarness rule;
  FakeWorker agent{"digits", "exploding", core::kNodeAgentRank};
  std::vector<FakeWorker> workers;
  std::vector<std::string> cores;
  std::int64_t time = kBegin;

  Loaders(const std::string& with, int core_count, std::uint32_t world = 1)
      : rule(RuleHarness::of("dataloader", with)) {
    agent.header.worker = core::name_hash("node-7");
    std::vector<Entry> names{{core::DictionaryType::node, "node-7"}};
    for (int i = 0; i < core_count; ++i) {
      cores.push_back(core_mode(std::to_string(i), "user"));
      names.push_back({core::DictionaryType::series, cores.back()});
    }
    for (int i = 0; i < 64; ++i) {
      names.push_back({core::DictionaryType::track, "dataloader/" + std::to_string(i)});
    }
    rule.feed(agent.dictionary(names));
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      workers.emplace_back("digits", "exploding", rank, world);
      rule.feed(workers.back().start(R"(,"node":"node-7")"));
    }
  }
  void samples() {
    std::vector<Sample> all;
    for (const std::string& core : cores) all.push_back({core, time, 0.5});
    rule.feed(agent.system(all));
  }
  void loads(int processes) {
    std::vector<Spent> spans;
    for (int i = 0; i < processes; ++i) {
      spans.push_back({"load", 0.2, "dataloader/" + std::to_string(i)});
    }
    for (FakeWorker& worker : workers) {
      worker.header.time = time;
      rule.feed(worker.spans(Mode::train, 0, spans));
    }
  }
  /// So many seconds in which each worker has so many processes that load.
  void seconds(int count, int processes) {
    for (int i = 0; i < count; ++i) {
      samples();
      if (processes > 0) loads(processes);
      time += kSecond;
    }
  }
  void end() {
    for (FakeWorker& worker : workers) rule.feed(worker.end());
  }
};

TEST(Dataloader, TooFewProcessesForTheCores) {
  Loaders run("{}", 10);
  run.seconds(61, 6);
  const auto issues = run.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].kind, "too_few");
  EXPECT_EQ(issues[0].labels.get("node"), "node-7");
  EXPECT_EQ(issues[0].severity, core::Severity::info);
  EXPECT_EQ(issues[0].evidence.observed.value, 6);
  EXPECT_EQ(issues[0].evidence.threshold->value, 7);
  EXPECT_EQ(number_in(issues[0], "cores"), 10);
  EXPECT_EQ(number_in(issues[0], "seconds"), 60);
  EXPECT_NEAR(number_in(issues[0], "loading_p50_seconds"), 0.2, 1e-9);
  EXPECT_EQ(core::nanoseconds(issues[0].time), kBegin + kMinute);
}

TEST(Dataloader, ExactlyTheLimitsAreAllRight) {
  for (const int processes : {7, 20}) {
    Loaders run("{}", 10);
    run.seconds(61, processes);
    run.end();
    EXPECT_TRUE(run.rule.firing().empty()) << processes;
    EXPECT_EQ(run.rule.rule_state(), "NoIssuesFound");
  }
}

TEST(Dataloader, TooManyProcessesForTheCores) {
  Loaders run("{}", 10);
  run.seconds(61, 21);
  ASSERT_EQ(run.rule.firing().size(), 1U);
  EXPECT_EQ(run.rule.firing()[0].kind, "too_many");
}

TEST(Dataloader, ProcessesOfAllWorkersOfTheNodeCount) {
  Loaders run("{}", 10, 3);
  run.seconds(61, 7);
  ASSERT_EQ(run.rule.firing().size(), 1U) << "21 on 10 cores";
  EXPECT_EQ(run.rule.firing()[0].kind, "too_many");
  EXPECT_EQ(run.rule.firing()[0].evidence.observed.value, 21);
}

TEST(Dataloader, SecondsWithoutLoadingAreNoneAndPatienceCountsTheOthers) {
  for (const int loading : {10, 11}) {
    Loaders run("{}", 10);
    run.seconds(loading, 2);
    run.seconds(61 - loading, 0);
    run.end();
    EXPECT_EQ(run.rule.firing().size(), loading == 11 ? 1U : 0U) << loading;
  }
}

TEST(Dataloader, TheMedianCountsAndItsWholePart) {
  Loaders run("{min_threshold: 60}", 10);
  run.seconds(30, 5);
  run.seconds(30, 6);  // median 5.5: 5
  run.seconds(1, 6);
  ASSERT_EQ(run.rule.firing().size(), 1U);
  EXPECT_EQ(run.rule.firing()[0].evidence.observed.value, 5);
}

TEST(Dataloader, APeriodIsJudgedWhenItsWorkersHavePassedItsEnd) {
  Loaders run("{}", 10);
  run.seconds(60, 2);
  run.samples();
  EXPECT_TRUE(run.rule.firing().empty()) << "the worker may still have loaded";
  run.workers[0].header.time = kBegin + kMinute;
  run.rule.feed(run.workers[0].step_end(Mode::train, 0));
  EXPECT_EQ(run.rule.firing().size(), 1U);
}

TEST(Dataloader, WithoutOneOfItsInputsNothingIsJudged) {
  Loaders silent("{}", 10);
  silent.seconds(130, 0);
  silent.end();
  EXPECT_EQ(silent.rule.rule_state(), "NoData");
  Loaders blind("{}", 0);
  for (int i = 0; i < 130; ++i) {
    blind.loads(2);
    blind.time += kSecond;
  }
  blind.end();
  EXPECT_EQ(blind.rule.rule_state(), "NoData");
}

TEST(Dataloader, RefusesLimitsThatCross) {
  EXPECT_NE(read_rules_text("  - {use: dataloader, with: {min_threshold: 201}}").errors, "");
}

}  // namespace
}  // namespace tocsin::rules
