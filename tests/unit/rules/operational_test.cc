// What the engine says without a rule of the user's: ends, losses, deaths, what is not watched.
// Limits and clocks: operational_limits_test.cc.
#include "rules/engine/partition/operational.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tests/unit/rules/issues_of.h"
#include "tests/unit/rules/state_topic.h"

namespace tocsin::rules {
namespace {

using namespace stories;  // NOLINT: the stories are this file's language

std::vector<core::JobEvent> ends(RuleHarness& rule) {
  std::vector<core::JobEvent> out;
  for (const Event& event : rule.events()) {
    const auto* job = std::get_if<core::JobEvent>(&event);
    if (job != nullptr && job->phase == core::JobPhase::ended) out.push_back(*job);
  }
  return out;
}

FakeWorker agent_of(const FakeWorker& worker) {
  FakeWorker agent;
  agent.header = worker.header;
  agent.header.rank = core::kNodeAgentRank;
  agent.header.worker = core::name_hash("node-a");
  agent.header.sequence = 0;
  return agent;
}

OwnedFrame died(FakeWorker& agent, const FakeWorker& worker, const std::string& how) {
  OwnedFrame frame = agent.heartbeat();
  frame.body = R"({"event":"died","worker":"worker_)" + std::to_string(worker.header.rank) +
               R"(","incarnation":)" + std::to_string(worker.header.incarnation) + "," + how + "}";
  frame.header.body_length = static_cast<std::uint32_t>(frame.body.size());
  return frame;
}

TEST(Operational, TheTableIsWhatTheSpecificationNames) {
  std::set<std::string_view> names;
  for (const OperationalRule& rule : operational_rules()) {
    names.insert(rule.name);
    EXPECT_FALSE(rule.recommendation.empty()) << rule.name;
  }
  EXPECT_EQ(names,
            (std::set<std::string_view>{"telemetry_gap", "job_failed", "job_lost", "run_unwatched",
                                        "clock_skew", "state_incomplete", "training_preflight",
                                        "worker_stands_still", "worker_place", "script_alert"}));
  EXPECT_EQ(operational_rules()[static_cast<std::size_t>(Operational::job_lost)].name, "job_lost");
}

TEST(Operational, ADeathWithACodeIsAFailedJob) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker worker;
  FakeWorker agent = agent_of(worker);
  rule.feed(worker.start()).feed(worker.step_end(Mode::train, 0));
  rule.feed(died(agent, worker, R"("exit_code":null,"signal":9)"));
  ASSERT_EQ(ends(rule).size(), 1U);
  EXPECT_EQ(ends(rule)[0].outcome, "failed");
  EXPECT_EQ(ends(rule)[0].exit_code, 137);
  const auto issues = issues_of(rule.firing(), "job_failed");
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].severity, core::Severity::error);
  EXPECT_NE(issues[0].summary.find("signal 9"), std::string::npos) << issues[0].summary;
  EXPECT_TRUE(issues_of(rule.resolved(), "job_failed").empty()) << "stays until the next launch";
  FakeWorker again;
  again.header.incarnation += 1;
  again.header.time += kSecond;
  rule.feed(again.start());
  ASSERT_EQ(issues_of(rule.resolved(), "job_failed").size(), 1U);
  EXPECT_EQ(issues_of(rule.resolved(), "job_failed")[0].run.attempt, 1U);
}

TEST(Operational, FurtherLinesOfAnErrorAreTheConsoleOfItsIssue) {
  const auto told = [](const std::string& error) {
    RuleHarness rule = RuleHarness::of("exploding_tensor");
    FakeWorker worker;
    rule.feed(worker.start()).feed(worker.step_end(Mode::train, 0));
    rule.feed(worker.end("failed", error));
    return issues_of(rule.firing(), "job_failed").at(0);
  };
  const auto text = [](const core::Issue& issue, std::string_view name) {
    return core::text_at(core::Value(issue.evidence.values), name);
  };
  const core::Issue plain = told("ValueError: x");
  EXPECT_EQ(text(plain, "error"), "ValueError: x");
  EXPECT_EQ(text(plain, "console"), "");
  const std::string calls(1500, 'c');
  const core::Issue deep = told("ValueError: x\nTraceback:\n  " + calls);
  EXPECT_EQ(text(deep, "error").size(), 500U);
  EXPECT_EQ(text(deep, "console"), "Traceback:\n  " + calls);
  EXPECT_NE(deep.summary.find("ValueError: x"), std::string::npos);
  EXPECT_EQ(deep.summary.find("Traceback"), std::string::npos) << deep.summary;
  EXPECT_EQ(text(told("a\n" + std::string(9000, 'd')), "console").size(), 2048U - 2U);
}

TEST(Operational, AFailedJobSaysWhatTheFirstProcessRaised) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker first;
  FakeWorker second;
  first.header.world_size = second.header.world_size = 2;
  second.header.rank = 1;
  rule.feed(first.start()).feed(second.start());
  const std::string long_text(900, 'x');
  rule.feed(second.end("failed", "RuntimeError: CUDA out of memory. (train.py:38 in step)\nmore"))
      .feed(first.end("failed", "DistBackendError: " + long_text));
  const auto issues = issues_of(rule.firing(), "job_failed");
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_NE(issues[0].summary.find(" failed with exit code 1: RuntimeError: CUDA out of memory."
                                   " (train.py:38 in step) ("),
            std::string::npos)
      << issues[0].summary;
}

TEST(Operational, AnErrorWithoutAnEndIsCut) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker worker;
  rule.feed(worker.start()).feed(worker.end("failed", std::string(5000, 'x')));
  const auto issues = issues_of(rule.firing(), "job_failed");
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_LT(issues[0].summary.size(), 400U);
}

TEST(Operational, ADeathNobodyKnowsMoreOfIsALostJobUntilTheCodeIsKnown) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker worker;
  FakeWorker agent = agent_of(worker);
  rule.feed(worker.start()).feed(died(agent, worker, R"("exit_code":null)"));
  ASSERT_EQ(ends(rule).size(), 1U);
  EXPECT_EQ(ends(rule)[0].outcome, "lost");
  EXPECT_EQ(issues_of(rule.firing(), "job_lost").size(), 1U);
  rule.feed(died(agent, worker, R"("exit_code":3)"));
  ASSERT_EQ(ends(rule).size(), 2U);
  EXPECT_EQ(ends(rule)[1].outcome, "failed");
  EXPECT_EQ(ends(rule)[1].number, 2U);
  EXPECT_EQ(issues_of(rule.resolved(), "job_lost").size(), 1U);
  EXPECT_EQ(issues_of(rule.firing(), "job_failed").size(), 1U);
  rule.feed(died(agent, worker, R"("exit_code":3)"));
  EXPECT_EQ(ends(rule).size(), 2U) << "told once";
}

TEST(Operational, OutcomesAreToldAsTheyAre) {
  const auto outcome_after = [](const std::string& word, const std::string& death) {
    RuleHarness rule = RuleHarness::of("exploding_tensor");
    FakeWorker worker;
    FakeWorker agent = agent_of(worker);
    rule.feed(worker.start());
    if (!word.empty()) {
      OwnedFrame end = worker.end();
      end.body = R"({"event":"end",)" + word + "}";
      end.header.body_length = static_cast<std::uint32_t>(end.body.size());
      rule.feed(end);
    }
    if (!death.empty()) rule.feed(died(agent, worker, death));
    const auto told = ends(rule);
    const std::size_t bad =
        issues_of(rule.firing(), "job_failed").size() + issues_of(rule.firing(), "job_lost").size();
    return (told.empty() ? "none" : told.back().outcome) + " " + std::to_string(bad);
  };
  EXPECT_EQ(outcome_after(R"("outcome":"completed","exit_code":0)", ""), "completed 0");
  EXPECT_EQ(outcome_after(R"("outcome":"completed")", R"("exit_code":1)"), "completed 0");
  EXPECT_EQ(outcome_after(R"("outcome":"failed","exit_code":2)", ""), "failed 1");
  EXPECT_EQ(outcome_after(R"("outcome":"unknown")", ""), "unknown 1");
  EXPECT_EQ(outcome_after(R"("outcome":"unknown","exit_code":3)", ""), "failed 1");
  EXPECT_EQ(outcome_after(R"("outcome":"stopped_by_rule")", ""), "stopped_by_rule 0");
  EXPECT_EQ(outcome_after("", R"("exit_code":0)"), "completed 0");
  EXPECT_EQ(outcome_after("", R"("exit_code":77)"), "stopped_by_rule 0");
  EXPECT_EQ(outcome_after("", R"("exit_code":null,"signal":11)"), "failed 1");
  EXPECT_EQ(outcome_after("", R"("exit_code":null,"command_id":"cmd_1")"), "stopped_by_rule 0");
  EXPECT_EQ(outcome_after("", R"("exit_code":null,"signal":15,"command_id":"cmd_1")"),
            "stopped_by_rule 0");
  EXPECT_EQ(outcome_after(R"("outcome":"completed")", R"("exit_code":0,"command_id":"cmd_1")"),
            "completed 0");
}

TEST(Operational, WhoseHookWasClosedBeforeItEndedIsToldWithItsCodeOnceThatIsSeen) {
  const auto after = [](const std::string& word, const std::string& death) {
    RuleHarness rule = RuleHarness::of("exploding_tensor");
    FakeWorker worker;
    FakeWorker agent = agent_of(worker);
    rule.feed(worker.start());
    OwnedFrame end = worker.end();
    end.body = R"({"event":"end",)" + word + "}";
    end.header.body_length = static_cast<std::uint32_t>(end.body.size());
    rule.feed(end);
    rule.feed(died(agent, worker, death)).feed(died(agent, worker, death));
    EXPECT_TRUE(issues_of(rule.firing(), "job_failed").empty());
    return ends(rule);
  };
  const auto stopped = after(R"("outcome":"stopped_by_rule")", R"("exit_code":77)");
  ASSERT_EQ(stopped.size(), 2U) << "and once only";
  EXPECT_EQ(stopped[0].exit_code, std::nullopt);
  EXPECT_EQ(stopped[1].outcome, "stopped_by_rule");
  EXPECT_EQ(stopped[1].exit_code, 77);
  EXPECT_EQ(stopped[1].ended_at, stopped[0].ended_at);
  EXPECT_EQ(after(R"("outcome":"completed")", R"("exit_code":0)").size(), 1U) << "no news";
  EXPECT_EQ(after(R"("outcome":"stopped_by_rule")", R"("exit_code":null)").size(), 1U);
  EXPECT_EQ(after(R"("outcome":"stopped_by_rule","exit_code":77)", R"("exit_code":1)").size(), 1U);
}

TEST(Operational, AProcessThatWeEndedHasNotFailed) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker worker;
  FakeWorker agent = agent_of(worker);
  // Its parent only saw the signal; the node's agent knows who sent it.
  rule.feed(worker.start()).feed(died(agent, worker, R"("exit_code":null,"signal":15)"));
  ASSERT_EQ(ends(rule).size(), 1U);
  EXPECT_EQ(ends(rule)[0].outcome, "failed");
  rule.feed(died(agent, worker, R"("exit_code":null,"command_id":"cmd_1")"));
  ASSERT_EQ(ends(rule).size(), 2U);
  EXPECT_EQ(ends(rule)[1].outcome, "stopped_by_rule");
  EXPECT_EQ(issues_of(rule.resolved(), "job_failed").size(), 1U);
  EXPECT_EQ(issues_of(rule.firing(), "job_lost").size(), 0U);
}

TEST(Operational, AWorkerThatHasLeftMayGo) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker one("digits", "exploding", 0, 2);
  FakeWorker two("digits", "exploding", 1, 2);
  FakeWorker agent = agent_of(one);
  rule.feed(one.start()).feed(two.start());
  OwnedFrame leave = one.heartbeat();
  leave.body = R"({"event":"leave","reason":"smaller"})";
  leave.header.body_length = static_cast<std::uint32_t>(leave.body.size());
  rule.feed(leave).feed(died(agent, one, R"("exit_code":null)"));
  EXPECT_TRUE(ends(rule).empty());
  rule.feed(two.end());
  ASSERT_EQ(ends(rule).size(), 1U);
  EXPECT_EQ(ends(rule)[0].outcome, "completed");
}

TEST(Operational, TheDeathOfAnEarlierProcessConcernsNobody) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker worker;
  FakeWorker agent = agent_of(worker);
  FakeWorker again;
  again.header.incarnation += 1;
  rule.feed(worker.start()).feed(again.start());
  rule.feed(died(agent, worker, R"("exit_code":null,"signal":9)"));
  EXPECT_TRUE(ends(rule).empty());
  EXPECT_TRUE(issues_of(rule.firing(), "job_failed").empty());
}

TEST(Operational, HeartbeatsThatStopMeanALostJobWhateverTheNodesAgentSends) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker worker;
  FakeWorker agent = agent_of(worker);
  rule.feed(worker.start()).feed(worker.heartbeat());
  for (int i = 1; i <= 30; ++i) {
    agent.header.time = kStart + i * 5 * kSecond;
    rule.feed(agent.system({{"hw.gpu.utilization", agent.header.time, 0.5}}));
    rule.tick(agent.header.time);
    if (i < 24) {
      ASSERT_TRUE(ends(rule).empty()) << i;
    }
  }
  ASSERT_EQ(ends(rule).size(), 1U);
  EXPECT_EQ(ends(rule)[0].outcome, "lost");
  ASSERT_EQ(issues_of(rule.firing(), "job_lost").size(), 1U);
  // It was only the network: the job goes on where it was.
  worker.header.time = kStart + 200 * kSecond;
  rule.feed(worker.tensors(Mode::train, 0, {{"t", {std::nan("")}}}));
  EXPECT_EQ(issues_of(rule.resolved(), "job_lost").size(), 1U);
  EXPECT_EQ(issues_of(rule.firing(), "exploding_tensor").size(), 1U);
  EXPECT_EQ(rule.engine().stats().revived_jobs, 1U);
}

TEST(Operational, AJobThatIsLostTwiceIsToldOfTwice) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker worker;
  rule.feed(worker.start()).feed(worker.heartbeat());
  OwnedFrame beat = worker.heartbeat();  // the trainer's clock stands still: same times again
  rule.feed(beat);
  rule.tick(kStart + 200 * kSecond);
  ASSERT_EQ(issues_of(rule.firing(), "job_lost").size(), 1U);
  // A copy of what was read already is no sign of life.
  rule.feed(beat);
  EXPECT_EQ(rule.engine().stats().revived_jobs, 0U);
  rule.feed(worker.heartbeat());
  EXPECT_EQ(rule.engine().stats().revived_jobs, 1U);
  rule.tick(kStart + 1000 * kSecond);
  const auto lost = issues_of(rule.firing(), "job_lost");
  ASSERT_EQ(lost.size(), 2U);
  EXPECT_NE(lost[0].event_id, lost[1].event_id) << "readers drop what they have seen";
}

TEST(Operational, ARelaunchAfterTheClockSteppedBackIsWatched) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker first;
  rule.feed(first.start()).feed(first.step_end(Mode::train, 0)).feed(first.end());
  FakeWorker again;
  again.header.incarnation -= 3600 * kSecond;
  again.header.time -= 3600 * kSecond;
  rule.feed(again.start());
  rule.feed(again.tensors(Mode::train, 0, {{"t", {std::nan("")}}}));
  EXPECT_EQ(issues_of(rule.firing(), "exploding_tensor").size(), 1U);
  EXPECT_EQ(rule.engine().stats().stale_frames, 0U);
}

TEST(Operational, ReportsAreCountedPerRunNotPerAttempt) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  for (std::uint64_t launch = 0; launch < 3; ++launch) {
    FakeWorker worker;
    worker.header.incarnation += launch;
    rule.feed(worker.start());
    rule.feed(worker.tensors(Mode::train, 0, {{"t", {std::nan("")}}}));
    rule.feed(worker.end());
  }
  std::uint64_t last = 0;
  for (const Event& event : rule.events()) {
    const auto* issue = std::get_if<core::Issue>(&event);
    if (issue == nullptr || issue->rule != "exploding_tensor") continue;
    EXPECT_GT(issue->sequence, last) << "a smaller number reads as an older report";
    last = issue->sequence;
  }
  EXPECT_EQ(last, 6U);
}

TEST(Operational, WithoutTheNewestRecordsSilenceProvesNothing) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker worker;
  rule.feed(worker.start()).feed(worker.heartbeat());
  rule.tick(kStart + 3600 * kSecond, false);
  EXPECT_TRUE(ends(rule).empty());
  rule.tick(kStart + 3600 * kSecond, true);
  EXPECT_EQ(ends(rule).size(), 1U);
}

TEST(Operational, OfThousandsOfRunsATickLooksAtAPartAndWithinASecondAtAll) {
  constexpr std::size_t kRuns = 3000;
  RuleHarness rule = RuleHarness::of("stalled_training_rule", "{threshold: 60}");
  std::int64_t last = 0;
  for (std::size_t i = 0; i < kRuns; ++i) {
    FakeWorker worker("digits", "run" + std::to_string(i));
    rule.feed(worker.step_end(Mode::train, 0));
    last = std::max(last, worker.header.time);
  }
  rule.tick(last + 60 * kSecond);
  EXPECT_EQ(rule.firing().size(), kRuns / 10) << "what is not due next waits for no one";
  for (int i = 1; i < 10; ++i) rule.tick(last + 60 * kSecond + i * kSecond / 10);
  EXPECT_EQ(rule.firing().size(), kRuns);
  rule.tick(last + 61 * kSecond);
  EXPECT_EQ(rule.firing().size(), kRuns) << "each once";
}

TEST(Operational, ANamedRunLaunchedAgainWithTheSameAttemptIsWatched) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  for (std::uint64_t launch = 0; launch < 3; ++launch) {
    FakeWorker worker;
    worker.header.incarnation += launch;
    rule.feed(worker.start());
    rule.feed(worker.tensors(Mode::train, 0, {{"t", {std::nan("")}}}));
    rule.feed(worker.end());
  }
  const auto issues = issues_of(rule.firing(), "exploding_tensor");
  ASSERT_EQ(issues.size(), 3U);
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(issues[i].run.attempt, i + 1);
  EXPECT_EQ(rule.engine().stats().stale_frames, 0U);
}

TEST(Operational, WhatBelongsToAnEarlierLaunchAsAWholeIsSaid) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker one;
  FakeWorker two;
  two.header.incarnation += 10;
  rule.feed(one.start(R"(,"launch":"a")")).feed(two.start(R"(,"launch":"b")"));
  FakeWorker late("digits", "exploding", 1, 2);
  rule.feed(late.start(R"(,"launch":"a")"));
  EXPECT_TRUE(issues_of(rule.firing(), "run_unwatched").empty()) << "a start alone is no data";
  rule.feed(late.step_end(Mode::train, 0)).feed(late.step_end(Mode::train, 1));
  EXPECT_EQ(issues_of(rule.firing(), "run_unwatched").size(), 1U);
  EXPECT_EQ(rule.engine().stats().late_launches, 1U);
  EXPECT_EQ(rule.engine().stats().stale_frames, 3U);
}

TEST(Operational, TheJobsEventsCarryLaunchStepAndPace) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker worker;
  FakeWorker other("digits", "exploding", 1, 2);
  rule.feed(worker.start(R"(,"node":"n1","boot_id":"0123456789ab","opened":500)"));
  rule.feed(other.start(R"(,"node":"n1","boot_id":"0123456789ab","opened":700)"));
  for (int step = 0; step < 40; ++step) rule.feed(worker.step_end(Mode::train, step));
  core::JobEvent newest;
  std::size_t beats = 0;
  for (const Event& event : rule.events()) {
    const auto* job = std::get_if<core::JobEvent>(&event);
    if (job == nullptr || job->phase != core::JobPhase::heartbeat) continue;
    newest = *job;
    ++beats;
  }
  EXPECT_LE(beats, 6U) << "4 s of training: at most one a second";
  EXPECT_GE(beats, 4U);
  EXPECT_EQ(newest.launch, (std::map<std::string, std::string>{{"n1", "01234567/700"}}));
  EXPECT_GE(newest.step.value_or(-1), 30);
  EXPECT_NEAR(newest.step_seconds.value_or(0), 0.1, 1e-9);
}

TEST(Operational, AJobWhoseStartGotLostIsLostAllTheSame) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker worker;
  rule.feed(worker.heartbeat()).feed(worker.step_end(Mode::train, 0));
  for (int i = 1; i <= 30; ++i) rule.tick(kStart + i * 5 * kSecond);
  ASSERT_EQ(ends(rule).size(), 1U);
  EXPECT_EQ(ends(rule)[0].outcome, "lost");
}

TEST(Operational, EveryCounterHasItsOwnNameAndValue) {
  EngineStats stats;
  std::set<std::string> names;
  std::size_t fields = 0;
  for_each_counter(stats, [&](std::string_view name, std::string_view help, std::uint64_t value) {
    EXPECT_TRUE(name.starts_with("tocsin_rules_") && name.ends_with("_total")) << name;
    EXPECT_FALSE(help.empty());
    EXPECT_EQ(value, 0U);
    names.insert(std::string(name));
    ++fields;
  });
  for_each_gauge(stats, [&](std::string_view name, std::string_view, std::uint64_t) {
    names.insert(std::string(name));
    ++fields;
  });
  EXPECT_EQ(names.size(), fields);
  // A field that is added must be added to the tables.
  EXPECT_EQ(fields * sizeof(std::uint64_t), sizeof stats);
}

}  // namespace
}  // namespace tocsin::rules
