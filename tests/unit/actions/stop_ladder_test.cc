#include "actions/stop_ladder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <map>

#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace testing_support;

const ProcessFence kFence{4711, 998877, "b", "h1"};

core::Command stop_command(bool allow_force = false) {
  core::Command out;
  out.command_id = "cmd_one";
  out.action = "stop";
  out.run = kRun;
  out.attempt = 1;
  out.issued_at = kStart;
  out.expires_at = kStart + 10min;
  out.args = core::ValueMap{
      {"mode", "checkpoint_then_stop"},
      {"deadline", core::ValueMap{{"ack", "30s"}, {"graceful", "2m"}, {"total", "3m"}}},
      {"grace", "20s"},
      {"allow_force", allow_force},
      {"fence", to_value(kFence)}};
  return out;
}

core::Ack ack(const std::string& phase, const std::string& reason = "") {
  core::Ack out;
  out.command_id = "cmd_one";
  out.action = "stop";
  out.phase = phase;
  out.run = kRun;
  out.attempt = 1;
  out.step = 413;
  out.worker = "worker_0";
  out.reason = reason;
  return out;
}

std::vector<StopState> states(const std::vector<StopTransition>& transitions) {
  std::vector<StopState> out;
  for (const auto& one : transitions) out.push_back(one.to);
  return out;
}

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
  EXPECT_EQ(ladder.next_deadline(), std::nullopt);
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
  EXPECT_EQ(ladder.state("cmd_one"), StopState::platform_graceful);
}

TEST(StopLadder, ReadingEverythingAgainAfterARestartLeadsToTheSameState) {
  StopLadder ladder;  // the agent was down from 5 s to 20 min
  ladder.on_command(stop_command(), kStart + 20min);
  ladder.on_ack(ack("accepted"), kStart + 20min);
  ladder.on_ack(ack("stopped"), kStart + 20min);
  EXPECT_EQ(ladder.state("cmd_one"), StopState::stopped);
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
  EXPECT_EQ(ladder.next_deadline(), std::nullopt);
}

TEST(StopLadder, ARefusalDecidesByItsReason) {
  const auto after = [](const char* reason) {
    StopLadder ladder;
    ladder.on_command(stop_command(), kStart);
    const auto step = ladder.on_ack(ack("refused", reason), kStart + 1s);
    return std::pair(*ladder.state("cmd_one"), step.signals.size());
  };
  EXPECT_EQ(after("stale"), std::pair(StopState::rejected_stale, std::size_t{0}));
  EXPECT_EQ(after("expired"), std::pair(StopState::expired, std::size_t{0}));
  EXPECT_EQ(after("duplicate"), std::pair(StopState::cooperative, std::size_t{0}));
  EXPECT_EQ(after("unsupported"), std::pair(StopState::platform_graceful, std::size_t{1}));
}

TEST(StopLadder, AcksOfAnotherAttemptDoNotCount) {
  StopLadder ladder;
  ladder.on_command(stop_command(), kStart);
  auto other = ack("stopped");
  other.attempt = 2;
  EXPECT_THAT(ladder.on_ack(other, kStart).transitions, IsEmpty());
  auto second_rank = ack("stopped");
  second_rank.rank = 1;
  EXPECT_THAT(ladder.on_ack(second_rank, kStart).transitions, IsEmpty());
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

TEST(StopLadder, ANewerAttemptIsNotStoppedByAnOldCommand) {
  core::JobEvent started;
  started.phase = core::JobPhase::started;
  started.run.uid = kRun;
  started.run.attempt = 2;
  StopLadder ladder;
  ladder.on_command(stop_command(), kStart);
  EXPECT_THAT(states(ladder.on_job(started, kStart + 5s).transitions),
              ElementsAre(StopState::already_ended));
  EXPECT_THAT(ladder.tick(kStart + 30s).signals, IsEmpty());
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

TEST(StopLadder, NextDeadlineIsWhenTheNextRungIsDue) {
  StopLadder ladder;
  EXPECT_EQ(ladder.next_deadline(), std::nullopt);
  ladder.on_command(stop_command(true), kStart);
  EXPECT_EQ(ladder.next_deadline(), kStart + 30s);
  ladder.on_ack(ack("accepted"), kStart + 1s);
  EXPECT_EQ(ladder.next_deadline(), kStart + 2min);
  ladder.tick(kStart + 2min);
  EXPECT_EQ(ladder.next_deadline(), kStart + 2min + 20s);
}

class FakeProcesses final : public ProcessControl {
 public:
  Observed send(const ProcessFence&, int signal) override {
    if (signal != 0) signals.push_back(signal);
    if (signal == SIGKILL || (signal == SIGTERM && obeys)) answer = Observed::ended;
    return answer;
  }
  std::vector<int> signals;
  bool obeys = true;
  Observed answer = Observed::signalled;
};

struct Agent {
  Agent() {
    auto owned = std::make_unique<FakeProcesses>();
    processes = owned.get();
    agent = std::make_unique<LocalStopAgent>("h1", std::move(owned), log, telemetry);
  }
  core::NullLog log;
  core::NullTelemetry telemetry;
  FakeProcesses* processes;
  std::unique_ptr<LocalStopAgent> agent;
};

TEST(LocalStopAgent, TerminatesAProcessThatDoesNotAnswer) {
  Agent node;
  node.agent->on_command(stop_command(), kStart);
  EXPECT_TRUE(node.agent->busy());
  EXPECT_THAT(states(node.agent->tick(kStart + 30s)),
              ElementsAre(StopState::platform_graceful, StopState::stopped));
  EXPECT_THAT(node.processes->signals, ElementsAre(SIGTERM));
  EXPECT_FALSE(node.agent->busy());
}

TEST(LocalStopAgent, PassesOverProcessesOfOtherMachines) {
  Agent node;
  auto command = stop_command();
  auto fence = kFence;
  fence.host = "h2";
  command.args = core::ValueMap{{"fence", to_value(fence)}};
  EXPECT_THAT(node.agent->on_command(command, kStart), IsEmpty());
  EXPECT_THAT(node.agent->tick(kStart + 1h), IsEmpty());
  EXPECT_THAT(node.processes->signals, IsEmpty());
}

TEST(LocalStopAgent, NeverSignalsAProcessThatIsNotTheFencedOne) {
  Agent node;
  node.processes->answer = Observed::stale;
  EXPECT_THAT(states(node.agent->on_command(stop_command(), kStart)),
              ElementsAre(StopState::cooperative, StopState::rejected_stale));
  node.agent->tick(kStart + 30s);
  EXPECT_THAT(node.processes->signals, IsEmpty());
}

TEST(LocalStopAgent, SaysWhenTheProcessWasGoneBefore) {
  Agent node;
  node.processes->answer = Observed::ended;
  EXPECT_THAT(states(node.agent->on_command(stop_command(), kStart)),
              ElementsAre(StopState::cooperative, StopState::already_ended));
}

TEST(LocalStopAgent, SeesAProcessEndByItself) {
  Agent node;
  node.agent->on_command(stop_command(), kStart);
  node.processes->answer = Observed::ended;
  EXPECT_THAT(states(node.agent->tick(kStart + 1s)), ElementsAre(StopState::stopped));
}

TEST(ProcessFence, NeedsThePidAndItsStart) {
  EXPECT_EQ(process_fence(to_value(kFence)), kFence);
  EXPECT_EQ(process_fence(core::Value{}), std::nullopt);
  EXPECT_EQ(process_fence(core::ValueMap{{"pid", 4711}}), std::nullopt);
  EXPECT_EQ(process_fence(core::ValueMap{{"pid", 1}, {"pid_start", 5}}), std::nullopt);
  EXPECT_EQ(process_fence(core::ValueMap{{"pid", -4711}, {"pid_start", 5}}), std::nullopt);
  EXPECT_EQ(process_fence(core::ValueMap{{"pid", 4711.0}, {"pid_start", "998877"}})->pid_start,
            998877u);
  EXPECT_EQ(process_fence(core::ValueMap{{"pid", 4711.5}, {"pid_start", 5}}), std::nullopt);
}

}  // namespace
}  // namespace tocsin::actions
