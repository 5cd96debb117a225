// The agent that ends processes of its node, over processes that only pretend.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "tests/unit/actions/stops.h"

namespace tocsin::actions {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace testing_support;

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
  Gauges telemetry;
  FakeProcesses* processes;
  std::unique_ptr<LocalStopAgent> agent;
};

TEST(LocalStopAgent, TerminatesAProcessThatDoesNotAnswer) {
  Agent node;
  node.agent->on_command(stop_command(), kStart);
  EXPECT_THAT(states(node.agent->tick(kStart + 30s)),
              ElementsAre(StopState::platform_graceful, StopState::stopped));
  EXPECT_THAT(node.processes->signals, ElementsAre(SIGTERM));
}

TEST(LocalStopAgent, ShowsHowManyStopsStandWhere) {
  Agent node;
  const auto standing = [&](const std::string& state) {
    return node.telemetry.at("tocsin_router_stop_state{local," + state + "}");
  };
  node.processes->obeys = false;
  EXPECT_EQ(standing("cooperative"), 0);
  node.agent->on_command(stop_command(), kStart);
  EXPECT_EQ(standing("cooperative"), 1);
  node.agent->tick(kStart + 30s);
  EXPECT_EQ(standing("cooperative"), 0);
  EXPECT_EQ(standing("platform_graceful"), 1);
  node.processes->answer = Observed::ended;
  node.agent->tick(kStart + 31s);
  EXPECT_EQ(standing("platform_graceful"), 0);
}

TEST(LocalStopAgent, PassesOverProcessesOfOtherMachines) {
  Agent node;
  auto command = stop_command();
  auto fence = kFence;
  fence.host = "h2";
  command.args = core::ValueMap{{"fence", fence_value(fence)}};
  EXPECT_THAT(node.agent->on_command(command, kStart), IsEmpty());
  EXPECT_THAT(node.agent->tick(kStart + 1h), IsEmpty());
  EXPECT_THAT(node.processes->signals, IsEmpty());
}

// The platform that runs it ends it: a signal from here would be a second stop.
TEST(LocalStopAgent, LeavesAloneWhatAPlatformEnds) {
  Agent node;
  node.agent->leave(
      [](const core::Value& fence) { return core::text_at(fence, "platform") == "slurm"; });
  auto command = stop_command();
  core::ValueMap fence = *core::as<core::ValueMap>(fence_value(kFence));
  fence.emplace_back("platform", "slurm");
  command.args = core::ValueMap{{"fence", fence}};
  EXPECT_THAT(node.agent->on_command(command, kStart), IsEmpty());
  EXPECT_THAT(node.agent->tick(kStart + 1h), IsEmpty());
  EXPECT_THAT(node.processes->signals, IsEmpty());
  node.agent->on_command(stop_command(), kStart);
  node.agent->tick(kStart + 30s);
  EXPECT_THAT(node.processes->signals, ElementsAre(SIGTERM));
}

TEST(LocalStopAgent, NeverSignalsAProcessThatIsNotTheFencedOne) {
  Agent node;
  node.agent->tick(kStart);
  node.processes->answer = Observed::stale;
  EXPECT_THAT(states(node.agent->on_command(stop_command(), kStart)),
              ElementsAre(StopState::cooperative, StopState::rejected_stale));
  node.agent->tick(kStart + 30s);
  EXPECT_THAT(node.processes->signals, IsEmpty());
}

TEST(LocalStopAgent, SaysWhenTheProcessWasGoneBefore) {
  Agent node;
  node.agent->tick(kStart);
  node.processes->answer = Observed::ended;
  EXPECT_THAT(states(node.agent->on_command(stop_command(), kStart)),
              ElementsAre(StopState::cooperative, StopState::already_ended));
}

// A process that has ended is no proof of how, while its last words are still to be read.
TEST(LocalStopAgent, LooksAtNoProcessBeforeEverythingIsRead) {
  Agent node;
  node.processes->answer = Observed::ended;
  EXPECT_THAT(states(node.agent->on_command(stop_command(), kStart + 1min)),
              ElementsAre(StopState::cooperative));
  EXPECT_THAT(states(node.agent->on_ack(ack("stopped"), kStart + 1min)),
              ElementsAre(StopState::stopped));
  EXPECT_THAT(node.agent->tick(kStart + 1min), IsEmpty());
}

TEST(LocalStopAgent, WhatHappenedBeforeItStartedIsNoNews) {
  core::NullLog log;
  core::NullTelemetry telemetry;
  LocalStopAgent agent("h1", std::make_unique<FakeProcesses>(), log, telemetry);
  agent.started(kStart + 1min);
  auto old = ack("refused", "unsupported");
  old.time = kStart + 5s;
  agent.on_command(stop_command(), kStart + 1min);
  const auto read = agent.on_ack(old, kStart + 1min);
  ASSERT_EQ(read.size(), 1u);
  EXPECT_TRUE(read[0].replayed);
  EXPECT_EQ(read[0].at, kStart + 5s);
}

TEST(LocalStopAgent, ACommandToTheNextAttemptOnAnotherNodeEndsTheOneHere) {
  Agent node;
  node.agent->on_command(stop_command(), kStart);
  auto next = stop_command();
  next.command_id = "cmd_two";
  next.attempt = 2;
  auto fence = kFence;
  fence.host = "h2";
  next.args = core::ValueMap{{"fence", fence_value(fence)}};
  EXPECT_THAT(states(node.agent->on_command(next, kStart + 1s)),
              ElementsAre(StopState::rejected_stale));
  node.agent->tick(kStart + 31s);
  EXPECT_THAT(node.processes->signals, IsEmpty());
}

TEST(LocalStopAgent, SeesAProcessEndByItself) {
  Agent node;
  node.agent->on_command(stop_command(), kStart);
  node.agent->tick(kStart);
  node.processes->answer = Observed::ended;
  EXPECT_THAT(states(node.agent->tick(kStart + 1s)), ElementsAre(StopState::stopped));
}

TEST(ProcessFence, NeedsThePidAndItsStart) {
  EXPECT_EQ(process_fence(fence_value(kFence)), kFence);
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
