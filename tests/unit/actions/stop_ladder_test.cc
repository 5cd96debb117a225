// The rungs of a stop: ask, wait, signal, kill; and what each end says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <functional>
#include <map>

#include "tests/unit/actions/stops.h"

namespace tocsin::actions {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace testing_support;

TEST(StopLadder, ACooperativeRunStopsWithoutASignal) {
  StopLadder ladder;
  EXPECT_THAT(states(ladder.on_command(stop_command(), kStart).transitions),
              ElementsAre(StopState::cooperative));
  EXPECT_THAT(ladder.on_ack(ack("received"), kStart + 1s).transitions, IsEmpty());
  EXPECT_THAT(states(ladder.on_ack(ack("accepted"), kStart + 2s).transitions),
              ElementsAre(StopState::checkpointing));
  EXPECT_THAT(ladder.on_ack(ack("checkpoint_done"), kStart + 3s).transitions, IsEmpty());
  EXPECT_THAT(ladder.tick(kStart + 60s).signals, IsEmpty());
  EXPECT_THAT(states(ladder.on_ack(ack("stopped"), kStart + 61s).transitions),
              ElementsAre(StopState::stopped));
  EXPECT_THAT(ladder.watched(), IsEmpty());
  EXPECT_THAT(ladder.tick(kStart + 1h).signals, IsEmpty());
}

TEST(StopLadder, SignalsARunThatDoesNotAcceptInTime) {
  StopLadder ladder;
  ladder.on_command(stop_command(), kStart);
  EXPECT_THAT(ladder.tick(kStart + 30s - 1ns).signals, IsEmpty());
  const auto step = ladder.tick(kStart + 30s);
  EXPECT_THAT(states(step.transitions), ElementsAre(StopState::platform_graceful));
  ASSERT_EQ(step.signals.size(), 1u);
  EXPECT_EQ(step.signals[0].number, SIGTERM);
  EXPECT_EQ(step.signals[0].fence, kFence);
  EXPECT_THAT(ladder.tick(kStart + 31s).signals, IsEmpty());  // once
}

TEST(StopLadder, ReceivingIsNotAccepting) {
  StopLadder ladder;
  ladder.on_command(stop_command(), kStart);
  ladder.on_ack(ack("received"), kStart + 1s);
  EXPECT_EQ(ladder.tick(kStart + 30s).signals.size(), 1u);
}

TEST(StopLadder, SignalsARunThatAcceptedAndDoesNotEnd) {
  StopLadder ladder;
  ladder.on_command(stop_command(), kStart);
  ladder.on_ack(ack("accepted"), kStart + 1s);
  EXPECT_THAT(ladder.tick(kStart + 2min - 1ns).signals, IsEmpty());
  EXPECT_EQ(ladder.tick(kStart + 2min).signals.at(0).number, SIGTERM);
}

TEST(StopLadder, KillsOnlyWhenItIsAllowed) {
  StopLadder gentle;
  gentle.on_command(stop_command(false), kStart);
  gentle.tick(kStart + 30s);
  EXPECT_THAT(gentle.tick(kStart + 3min - 1ns).transitions, IsEmpty());
  EXPECT_THAT(states(gentle.tick(kStart + 3min).transitions), ElementsAre(StopState::failed));

  StopLadder forceful;
  forceful.on_command(stop_command(true), kStart);
  forceful.tick(kStart + 30s);
  EXPECT_THAT(forceful.tick(kStart + 50s - 1ns).signals, IsEmpty());
  const auto step = forceful.tick(kStart + 50s);
  EXPECT_THAT(states(step.transitions), ElementsAre(StopState::platform_force));
  EXPECT_EQ(step.signals.at(0).number, SIGKILL);
  forceful.on_observed("cmd_one", Observed::signalled, kStart + 50s);
  EXPECT_THAT(states(forceful.on_observed("cmd_one", Observed::ended, kStart + 51s).transitions),
              ElementsAre(StopState::stopped));
}

TEST(StopLadder, AProcessThatOutlivesSigkillIsAFailure) {
  StopLadder ladder;
  ladder.on_command(stop_command(true), kStart);
  ladder.tick(kStart + 30s);
  ladder.tick(kStart + 50s);
  EXPECT_THAT(states(ladder.tick(kStart + 60s).transitions), ElementsAre(StopState::failed));
}

TEST(StopLadder, TheSameCommandAgainStartsNothingTwice) {
  StopLadder ladder;
  ladder.on_command(stop_command(), kStart);
  ladder.tick(kStart + 30s);
  EXPECT_THAT(ladder.on_command(stop_command(), kStart + 31s).transitions, IsEmpty());
  EXPECT_THAT(ladder.tick(kStart + 32s).signals, IsEmpty());
  EXPECT_EQ(ladder.states().at("cmd_one"), StopState::platform_graceful);
}

TEST(StopLadder, ReadingEverythingAgainAfterARestartLeadsToTheSameState) {
  StopLadder ladder;  // the agent was down from 5 s to 20 min
  ladder.on_command(stop_command(), kStart + 20min);
  ladder.on_ack(ack("accepted"), kStart + 20min);
  ladder.on_ack(ack("stopped"), kStart + 20min);
  EXPECT_EQ(ladder.states().at("cmd_one"), StopState::stopped);
  EXPECT_THAT(ladder.tick(kStart + 20min).signals, IsEmpty());
}

TEST(StopLadder, AnExpiredCommandNeverSignals) {
  StopLadder ladder;
  ladder.on_command(stop_command(), kStart + 11min);
  const auto step = ladder.tick(kStart + 11min);
  EXPECT_THAT(states(step.transitions), ElementsAre(StopState::expired));
  EXPECT_THAT(step.signals, IsEmpty());
}

TEST(StopLadder, PassesOverDryRunsAndOtherActions) {
  StopLadder ladder;
  auto dry = stop_command();
  dry.dry_run = true;
  EXPECT_THAT(ladder.on_command(dry, kStart).transitions, IsEmpty());
  auto capture = stop_command();
  capture.action = "capture";
  EXPECT_THAT(ladder.on_command(capture, kStart).transitions, IsEmpty());
  EXPECT_THAT(ladder.states(), IsEmpty());
}

// A refusal ends the ladder with its reason; nothing is signalled.
TEST(StopLadder, ARefusalDecidesByItsReason) {
  const auto after = [](const char* reason) {
    StopLadder ladder;
    ladder.on_command(stop_command(), kStart);
    auto step = ladder.on_ack(ack("refused", reason), kStart + 1s);
    const auto later = ladder.tick(kStart + 31s);
    return std::pair(ladder.states().at("cmd_one"), step.signals.size() + later.signals.size());
  };
  EXPECT_EQ(after("stale"), std::pair(StopState::rejected_stale, std::size_t{0}));
  EXPECT_EQ(after("expired"), std::pair(StopState::expired, std::size_t{0}));
  EXPECT_EQ(after("unsupported"), std::pair(StopState::refused, std::size_t{0}));
  EXPECT_EQ(after("duplicate"), std::pair(StopState::platform_graceful, std::size_t{1}));
  EXPECT_EQ(after("too_late"), std::pair(StopState::platform_graceful, std::size_t{1}));
}

TEST(StopLadder, ALateRankThatRefusesDoesNotHoldTheOthersUp) {
  StopLadder ladder;
  ladder.on_command(stop_command(), kStart);
  ladder.on_ack(ack("accepted"), kStart + 1s);
  auto late = ack("refused", "stale");
  late.worker = "worker_7";
  EXPECT_THAT(ladder.on_ack(late, kStart + 2s).transitions, IsEmpty());
  EXPECT_EQ(ladder.states().at("cmd_one"), StopState::checkpointing);
}

// Ranks of one launch may state different attempts: the engine joins them (docs/launches.md). Those
// of other launches: ack_target_test.cc.
TEST(StopLadder, RanksOfOneLaunchMayStateDifferentAttempts) {
  StopLadder ladder;
  auto command = stop_command();
  command.attempt = 1'764'000'000;
  ladder.on_command(command, kStart);
  auto second_rank = ack("stopped");
  second_rank.rank = 1;
  EXPECT_THAT(ladder.on_ack(second_rank, kStart).transitions, IsEmpty());
  auto own_header = ack("stopped");
  own_header.attempt = 1'764'000'005;
  EXPECT_THAT(states(ladder.on_ack(own_header, kStart).transitions),
              ElementsAre(StopState::stopped));
}

core::JobEvent job(core::JobPhase phase, std::uint32_t attempt, core::WallTime at = kStart) {
  core::JobEvent out;
  out.phase = phase;
  out.run.uid = kRun;
  out.run.attempt = attempt;
  out.run.job = "digits";
  out.labels = {{"team", "nlp"}};
  out.time = at;
  return out;
}

core::Command stop_of_attempt(std::uint32_t attempt) {
  auto out = stop_command();
  out.attempt = attempt;
  out.revision = attempt;
  out.command_id = "cmd_" + std::to_string(attempt);
  return out;
}

// What came before the deadline of attempt 1's stop, and where the stop ends. No signal in any.
struct Replacement {
  const char* name;
  std::function<void(StopLadder&)> happens;
  StopState ends;
};

class StopFenceLadder : public ::testing::TestWithParam<Replacement> {};

TEST_P(StopFenceLadder, NothingIsSignalledForAnAttemptThatIsReplaced) {
  StopLadder ladder;
  GetParam().happens(ladder);
  EXPECT_EQ(ladder.states().at("cmd_1"), GetParam().ends);
  for (const auto after : {31s, 121s, 181s, 700s}) {
    EXPECT_THAT(ladder.tick(kStart + after).signals, IsEmpty());
  }
  EXPECT_EQ(ladder.states().at("cmd_1"), GetParam().ends);
}

using core::JobPhase;

INSTANTIATE_TEST_SUITE_P(
    Each, StopFenceLadder,
    ::testing::Values(
        Replacement{"torchrun_starts_it_again",
                    [](StopLadder& ladder) {
                      ladder.on_command(stop_of_attempt(1), kStart);
                      ladder.on_job(job(JobPhase::started, 2), kStart + 5s);
                    },
                    StopState::rejected_stale},
        Replacement{"only_a_heartbeat_of_the_next_is_seen",
                    [](StopLadder& ladder) {
                      ladder.on_command(stop_of_attempt(1), kStart);
                      ladder.on_job(job(JobPhase::heartbeat, 1'764'000'000), kStart + 5s);
                    },
                    StopState::rejected_stale},
        Replacement{"in_the_same_process_after_it_had_accepted",
                    [](StopLadder& ladder) {
                      ladder.on_command(stop_of_attempt(1), kStart);
                      auto accepted = ack("accepted");
                      accepted.command_id = "cmd_1";
                      accepted.incarnation = 100;
                      ladder.on_ack(accepted, kStart + 1s);
                      auto successor = ack("refused", "stale");
                      successor.command_id = "cmd_1";
                      successor.incarnation = 200;
                      ladder.on_ack(successor, kStart + 2s);
                    },
                    StopState::rejected_stale},
        Replacement{"the_next_is_asked_to_stop_on_another_node",
                    [](StopLadder& ladder) {
                      ladder.on_command(stop_of_attempt(1), kStart);
                      ladder.on_foreign(stop_of_attempt(2), kStart + 5s);
                    },
                    StopState::rejected_stale},
        Replacement{"a_late_issue_of_attempt_1_while_2_runs",
                    [](StopLadder& ladder) {
                      ladder.on_job(job(JobPhase::started, 2), kStart - 5s);
                      ladder.on_command(stop_of_attempt(1), kStart);
                    },
                    StopState::rejected_stale},
        Replacement{"an_older_command_behind_a_newer_one",
                    [](StopLadder& ladder) {
                      auto newer = stop_of_attempt(2);
                      newer.args = core::ValueMap{};  // no fence: only attempt 1 could be signalled
                      ladder.on_command(newer, kStart);
                      ladder.on_command(stop_of_attempt(1), kStart);
                      EXPECT_EQ(ladder.states().at("cmd_2"), StopState::cooperative);
                    },
                    StopState::rejected_stale},
        Replacement{"the_pid_belongs_to_somebody_else",
                    [](StopLadder& ladder) {
                      ladder.on_command(stop_of_attempt(1), kStart);
                      ladder.on_observed("cmd_1", Observed::stale, kStart + 1s);
                    },
                    StopState::rejected_stale},
        Replacement{"it_had_ended_before",
                    [](StopLadder& ladder) {
                      ladder.on_job(job(JobPhase::ended, 1, kStart - 5s), kStart - 5s);
                      ladder.on_command(stop_of_attempt(1), kStart);
                    },
                    StopState::already_ended}),
    [](const auto& one) { return std::string(one.param.name); });

TEST(StopLadder, ANewerAttemptCanBeStoppedAfterAnOlderOneWas) {
  StopLadder ladder;
  ladder.on_command(stop_of_attempt(1), kStart);
  EXPECT_THAT(states(ladder.on_command(stop_of_attempt(2), kStart + 1s).transitions),
              ElementsAre(StopState::rejected_stale, StopState::cooperative));
  EXPECT_EQ(ladder.tick(kStart + 30s).signals.size(), 1u);
  EXPECT_EQ(ladder.states().at("cmd_2"), StopState::platform_graceful);
}

TEST(StopLadder, WrittenAgainForALaterLaunchItKeepsItsDeadlines) {
  StopLadder ladder;
  ladder.on_command(stop_command(), kStart);
  auto again = stop_command();
  again.revision = 2;
  EXPECT_THAT(ladder.on_command(again, kStart + 20s).transitions, IsEmpty());
  auto old = ack("refused", "stale");
  old.revision = 1;
  EXPECT_THAT(ladder.on_ack(old, kStart + 21s).transitions, IsEmpty());
  EXPECT_EQ(ladder.tick(kStart + 30s).signals.size(), 1u);

  StopLadder refused;
  refused.on_command(stop_command(), kStart);
  refused.on_ack(ack("refused", "stale"), kStart + 1s);
  EXPECT_THAT(states(refused.on_command(again, kStart + 2s).transitions),
              ElementsAre(StopState::cooperative));
}

// commands, acks and registry are three topics: after a restart they come in any order.
TEST(StopLadder, TheOrderInWhichTheTopicsAreReadDoesNotMatter) {
  const std::vector<std::function<void(StopLadder&)>> records{
      [](StopLadder& ladder) { ladder.on_command(stop_command(), kStart + 20min); },
      [](StopLadder& ladder) { ladder.on_ack(ack("accepted"), kStart + 20min); },
      [](StopLadder& ladder) { ladder.on_ack(ack("stopped"), kStart + 20min); }};
  for (const auto& order : {std::array{0, 1, 2}, {1, 2, 0}, {1, 0, 2}}) {
    StopLadder ladder;
    for (const int which : order) records[static_cast<std::size_t>(which)](ladder);
    EXPECT_EQ(ladder.states().at("cmd_one"), StopState::stopped);
    EXPECT_THAT(ladder.tick(kStart + 20min).transitions, IsEmpty());
  }
}

TEST(StopLadder, EveryBadEndIsAnIssueAndNoOther) {
  const std::map<StopState, std::string> told{{StopState::failed, "failed"},
                                              {StopState::refused, "refused"},
                                              {StopState::expired, "expired"},
                                              {StopState::rejected_stale, "stale"}};
  for (int i = 0; i <= static_cast<int>(StopState::refused); ++i) {
    StopTransition one;
    one.command_id = "cmd_one";
    one.run = kRun;
    one.to = static_cast<StopState>(i);
    one.reason = "because";
    one.at = kStart;
    one.job = "digits";
    one.labels = {{"team", "nlp"}};
    const auto issue = stop_failed_issue(one, "c1");
    ASSERT_EQ(issue.has_value(), told.contains(one.to)) << to_string(one.to);
    if (!issue) continue;
    EXPECT_EQ(issue->labels.get("reason"), told.at(one.to));
    EXPECT_EQ(issue->labels.get("job"), "digits");
    EXPECT_EQ(issue->labels.get("team"), "nlp");
    EXPECT_EQ(issue->labels.get("run_uid"), to_text(kRun));
    EXPECT_EQ(issue->summary, "digits was not stopped (attempt 1): because");
    EXPECT_EQ(stop_failed_issues({one}, "c1", kStart + 24h).size(), 1u);
    EXPECT_EQ(stop_failed_issues({one}, "c1", kStart + 25h).size(), 0u);
  }
}

TEST(StopLadder, TheEndOfTheJobIsProof) {
  core::JobEvent ended;
  ended.phase = core::JobPhase::ended;
  ended.run.uid = kRun;
  ended.run.attempt = 1;
  ended.outcome = "stopped_by_rule";
  ended.ended_at = kStart + 5s;
  StopLadder ladder;
  ladder.on_command(stop_command(), kStart);
  EXPECT_THAT(states(ladder.on_job(ended, kStart + 5s).transitions),
              ElementsAre(StopState::stopped));

  StopLadder late;
  ended.ended_at = kStart - 1s;
  late.on_command(stop_command(), kStart);
  EXPECT_THAT(states(late.on_job(ended, kStart).transitions),
              ElementsAre(StopState::already_ended));
}

TEST(StopLadder, AWithdrawnCommandIsCancelled) {
  StopLadder ladder;
  ladder.on_command(stop_command(), kStart);
  EXPECT_THAT(states(ladder.on_withdrawn(kRun, kStart + 1s).transitions),
              ElementsAre(StopState::cancelled));
  EXPECT_THAT(ladder.tick(kStart + 30s).signals, IsEmpty());
}

TEST(StopLadder, WithoutAFenceOnlyTheCooperativePathExists) {
  auto command = stop_command();
  command.args = core::ValueMap{};
  StopLadder ladder;
  ladder.on_command(command, kStart);
  EXPECT_THAT(ladder.tick(kStart + 5min).signals, IsEmpty());
  EXPECT_THAT(states(ladder.tick(kStart + 10min).transitions), ElementsAre(StopState::expired));
}

TEST(StopLadder, EachRungIsDueAtItsTime) {
  StopLadder ladder;
  ladder.on_command(stop_command(true), kStart);
  ladder.on_ack(ack("accepted"), kStart + 1s);
  EXPECT_THAT(ladder.tick(kStart + 2min - 1ms).transitions, IsEmpty());
  EXPECT_THAT(states(ladder.tick(kStart + 2min).transitions),
              ElementsAre(StopState::platform_graceful));
  EXPECT_THAT(ladder.tick(kStart + 2min + 20s - 1ms).transitions, IsEmpty());
  EXPECT_THAT(states(ladder.tick(kStart + 2min + 20s).transitions),
              ElementsAre(StopState::platform_force));
}

}  // namespace
}  // namespace tocsin::actions
