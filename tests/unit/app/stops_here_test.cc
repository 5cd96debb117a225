// What the collector is told of stops that are under way on its node.
#include "app/stages/stops_here.h"

#include <gtest/gtest.h>

namespace tocsin::app {
namespace {

using State = actions::StopState;

const core::RunUid kStoppedRun = core::run_uid_v5("stopped");
constexpr std::int64_t kSignalled = 1'000'000;

actions::StopTransition step(State to, std::string command = "cmd_1") {
  actions::StopTransition out;
  out.command_id = std::move(command);
  out.run = kStoppedRun;
  out.to = to;
  out.at = core::wall_time(kSignalled);
  return out;
}

TEST(StopsHere, WhatGoesAfterTheSignalWasStopped) {
  StopsHere here;
  EXPECT_EQ(here.stop_of(kStoppedRun, 1).command_id, "");
  EXPECT_FALSE(here.stops(kStoppedRun));
  here.note(step(State::platform_graceful));
  EXPECT_TRUE(here.stops(kStoppedRun));
  EXPECT_EQ(here.stop_of(kStoppedRun, kSignalled - 1).command_id, "cmd_1");
  here.note(step(State::stopped));
  EXPECT_EQ(here.stop_of(kStoppedRun, kSignalled - 1).command_id, "cmd_1")
      << "the stop agent may see the end first";
  EXPECT_EQ(here.stop_of(core::run_uid_v5("another"), 1).command_id, "");
}

TEST(StopsHere, ALaunchThatOpenedLaterWasNotMeant) {
  StopsHere here;
  here.note(step(State::platform_force));
  EXPECT_EQ(here.stop_of(kStoppedRun, kSignalled + 1).command_id, "");
}

TEST(StopsHere, AStopThatCameToNothingStoppedNobody) {
  for (const State end :
       {State::failed, State::cancelled, State::rejected_stale, State::expired, State::refused}) {
    StopsHere here;
    here.note(step(State::checkpointing));
    here.note(step(end, "cmd_2"));
    EXPECT_EQ(here.stop_of(kStoppedRun, 1).command_id, "cmd_1") << "the other stop goes on";
    here.note(step(end));
    EXPECT_EQ(here.stop_of(kStoppedRun, 1).command_id, "") << actions::to_string(end);
  }
}

TEST(StopsHere, WhatWasOnlyAskedForIsNotUnderWay) {
  StopsHere here;
  here.note(step(State::requested));
  here.note(step(State::cooperative));
  EXPECT_EQ(here.stop_of(kStoppedRun, 1).command_id, "");
}

TEST(StopsHere, RemembersTheNewestFewThousand) {
  StopsHere here;
  for (int i = 0; i < 5000; ++i) {
    auto one = step(State::platform_graceful);
    one.run = core::run_uid_v5(std::to_string(i));
    one.at = core::wall_time(kSignalled + i);
    here.note(one);
  }
  EXPECT_EQ(here.stop_of(core::run_uid_v5("0"), 1).command_id, "");
  EXPECT_EQ(here.stop_of(core::run_uid_v5("4999"), 1).command_id, "cmd_1");
}

}  // namespace
}  // namespace tocsin::app
