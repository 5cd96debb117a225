// Processes of this machine, held, signalled and seen to end.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "tests/integration/real_bench.h"

namespace tocsin::actions {
namespace {

using namespace testing_support;
using tests::ChildProgram;

ChildProgram sleeper(bool ignores_sigterm = false) {
  return ChildProgram({"/bin/sh", "-c",
                       std::string(ignores_sigterm ? "trap '' TERM; " : "") +
                           "echo ready; while :; do read line || exit 3; done"});
}

TEST(RealProcess, IsHeldSignalledAndSeenToEnd) {
  auto child = sleeper();
  child.line_with("ready");
  const auto fence = fence_of(child.pid(), "h1");
  ASSERT_TRUE(fence);
  EXPECT_GT(fence->pid_start, 0u);
  EXPECT_EQ(fence->boot_id.size(), 36u);
  auto process = LocalProcess::open(*fence, "h1");
  ASSERT_TRUE(process) << process.error().message;
  EXPECT_FALSE(process->ended());
  EXPECT_TRUE(process->signal(SIGTERM));
  EXPECT_TRUE(process->ended(10s));
  EXPECT_EQ(WTERMSIG(child.wait()), SIGTERM);
  EXPECT_EQ(LocalProcess::open(*fence, "h1").error().code, core::Code::not_found);
}

TEST(RealProcess, IsNotTouchedWhenTheFenceDoesNotFit) {
  auto child = sleeper();
  child.line_with("ready");
  const ProcessFence fence = *fence_of(child.pid(), "h1");
  for (const ProcessFence& wrong :
       {ProcessFence{fence.pid, fence.pid_start + 1, fence.boot_id, "h1"},
        ProcessFence{fence.pid, fence.pid_start, "00000000-0000-0000-0000-000000000000", "h1"},
        ProcessFence{fence.pid, fence.pid_start, fence.boot_id, "h2"}}) {
    const auto process = LocalProcess::open(wrong, "h1");
    ASSERT_FALSE(process);
    EXPECT_EQ(process.error().code, core::Code::failed_precondition);
    EXPECT_EQ(local_process_control("h1")->send(wrong, SIGKILL), Observed::stale);
  }
  EXPECT_TRUE(LocalProcess::open(fence, "h1"));
}

core::Command stop_of(const ProcessFence& fence, bool allow_force) {
  core::Command command;
  command.command_id = "cmd_one";
  command.action = "stop";
  command.run = kRun;
  command.issued_at = kStart;
  command.args = core::ValueMap{
      {"deadline", core::ValueMap{{"ack", "1s"}, {"graceful", "2s"}, {"total", "60s"}}},
      {"grace", "5s"},
      {"allow_force", allow_force},
      {"fence", fence_value(fence)}};
  return command;
}

TEST(RealProcess, OneThatIgnoresSigtermIsKilledAfterItsGrace) {
  auto child = sleeper(/*ignores_sigterm=*/true);
  child.line_with("ready");
  core::NullLog log;
  core::NullTelemetry telemetry;
  LocalStopAgent agent("h1", local_process_control("h1"), log, telemetry);
  agent.on_command(stop_of(*fence_of(child.pid(), "h1"), true), kStart);
  EXPECT_EQ(agent.tick(kStart + 1s).at(0).to, StopState::platform_graceful);  // SIGTERM
  EXPECT_TRUE(agent.tick(kStart + 5s).empty());
  EXPECT_EQ(agent.tick(kStart + 6s).at(0).to, StopState::platform_force);  // SIGKILL
  EXPECT_EQ(WTERMSIG(child.wait()), SIGKILL);
  EXPECT_EQ(agent.tick(kStart + 7s).at(0).to, StopState::stopped);
}

}  // namespace
}  // namespace tocsin::actions
