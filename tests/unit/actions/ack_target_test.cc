// Acks of another attempt, launch, node or run never end the ladder of a stop.
#include "actions/stop/ack_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "actions/stop/stop_ladder.h"
#include "tests/unit/actions/stops.h"

namespace tocsin::actions {
namespace {

using ::testing::IsEmpty;
using namespace testing_support;

/// An ack that is not for the command, and why.
struct Foreign {
  const char* name;
  std::function<void(core::Ack&)> is;
};

core::Command command_of_launch() {
  auto out = stop_command();
  out.attempt = 2;
  out.launch = {{"h1", "1f0c93ab/81402118843000"}};
  return out;
}

core::Ack ack_of_launch(const std::string& phase, const std::string& reason = "") {
  auto out = ack(phase, reason);
  out.attempt = 2;
  out.node = "h1";
  out.incarnation = static_cast<std::uint64_t>(core::nanoseconds(kStart - 1h));
  return out;
}

class ForeignAck : public ::testing::TestWithParam<Foreign> {};

TEST_P(ForeignAck, NeverEndsTheLadder) {
  for (const char* phase : {"received", "accepted", "checkpointing", "checkpoint_done", "stopping",
                            "stopped", "refused"}) {
    for (const char* reason : {"", "stale", "expired", "unsupported", "duplicate", "too_late"}) {
      StopLadder ladder;
      ladder.on_command(command_of_launch(), kStart);
      auto foreign = ack_of_launch(phase, reason);
      GetParam().is(foreign);
      EXPECT_THAT(ladder.on_ack(foreign, kStart + 1s).transitions, IsEmpty()) << phase << reason;
      EXPECT_EQ(ladder.states().at("cmd_one"), StopState::cooperative) << phase << reason;
      EXPECT_EQ(ladder.tick(kStart + 31s).signals.size(), 1u)
          << "the process is asked by a signal: " << phase << reason;
    }
  }
}

TEST_P(ForeignAck, ReadBeforeTheCommandChangesNothingEither) {
  StopLadder ladder;
  auto foreign = ack_of_launch("stopped");
  GetParam().is(foreign);
  ladder.on_ack(foreign, kStart);
  ladder.on_command(command_of_launch(), kStart);
  EXPECT_EQ(ladder.states().at("cmd_one"), StopState::cooperative);
}

TEST_P(ForeignAck, DoesNotUndoWhatTheRightOneHasAccepted) {
  StopLadder ladder;
  ladder.on_command(command_of_launch(), kStart);
  ladder.on_ack(ack_of_launch("accepted"), kStart + 1s);
  auto foreign = ack_of_launch("refused", "stale");
  GetParam().is(foreign);
  EXPECT_THAT(ladder.on_ack(foreign, kStart + 2s).transitions, IsEmpty());
  ladder.on_ack(ack_of_launch("stopped"), kStart + 3s);
  EXPECT_EQ(ladder.states().at("cmd_one"), StopState::stopped);
}

INSTANTIATE_TEST_SUITE_P(
    Each, ForeignAck,
    ::testing::Values(
        Foreign{"a_later_attempt", [](core::Ack& ack) { ack.attempt = 3; }},
        Foreign{"a_much_later_attempt", [](core::Ack& ack) { ack.attempt = 1'764'000'000; }},
        Foreign{"another_node", [](core::Ack& ack) { ack.node = "h2"; }},
        Foreign{"a_client_that_opened_later",
                [](core::Ack& ack) {
                  ack.incarnation = static_cast<std::uint64_t>(core::nanoseconds(kStart + 1min));
                }},
        Foreign{"another_run",
                [](core::Ack& ack) {
                  ack.run = *core::parse_run_uid("00000000-8c1f-5278-82e3-ea3595bc5999");
                }},
        Foreign{"no_run", [](core::Ack& ack) { ack.run = {}; }},
        Foreign{"another_command", [](core::Ack& ack) { ack.command_id = "cmd_two"; }}),
    [](const auto& one) { return std::string(one.param.name); });

// The engine counts on where a process states too small a number; start times differ by seconds.
TEST(AckTarget, WhatRanksOfOneLaunchStateIsTaken) {
  auto command = command_of_launch();
  auto one = ack_of_launch("accepted");
  one.attempt = 1;
  EXPECT_TRUE(answers(one, command));
  one.node.clear();
  one.incarnation = 0;
  EXPECT_TRUE(answers(one, command)) << "not told";
  command.attempt = 1'764'000'000;
  for (const std::uint32_t stated : {1U, 1'763'999'990U, 1'764'000'005U}) {
    one.attempt = stated;
    EXPECT_TRUE(answers(one, command)) << stated;
  }
  for (const std::uint32_t stated : {1'763'990'000U, 1'764'010'000U}) {
    one.attempt = stated;
    EXPECT_FALSE(answers(one, command)) << stated;
  }
}

}  // namespace
}  // namespace tocsin::actions
