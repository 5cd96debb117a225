// Who is a worker here: said by hooks, heard by agents, and nobody speaks for another process.
#include "collectors/node/presence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>

namespace tocsin::collectors {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

const core::RunUid kRun = core::run_uid_v5("presence " + std::to_string(::getpid()));

// Without other trainings that run on this machine: what is said, everybody hears.
auto of_this_test(auto heard) {
  std::erase_if(heard, [](const auto& one) { return one.first.run != kRun; });
  return heard;
}

WatchedProcess this_one() { return {::getpid(), 77, "boot", own_pid_namespace()}; }

TEST(Presence, WhatAHookSaysEveryAgentHears) {
  auto first = PresenceListener::open();
  auto second = PresenceListener::open();
  ASSERT_TRUE(first);
  ASSERT_TRUE(second);
  const PresenceSender sender;
  sender.announce({kRun, "worker_3\nof two lines", 42}, this_one());
  for (auto* listener : {&*first, &*second}) {
    const auto heard = of_this_test(listener->poll());
    ASSERT_THAT(heard, SizeIs(1));
    EXPECT_EQ(heard[0].first.run, kRun);
    EXPECT_EQ(heard[0].first.name, "worker_3\nof two lines");
    EXPECT_EQ(heard[0].first.incarnation, 42U);
    EXPECT_EQ(heard[0].second.pid, ::getpid());
    EXPECT_EQ(heard[0].second.pid_start, 77);
    EXPECT_EQ(heard[0].second.boot_id, "boot");
    EXPECT_THAT(of_this_test(listener->poll()), IsEmpty());
  }
}

TEST(Presence, NobodySpeaksForAnotherProcess) {
  auto agent = PresenceListener::open();
  ASSERT_TRUE(agent);
  WatchedProcess another = this_one();
  another.pid = ::getppid();
  PresenceSender().announce({kRun, "worker_0", 1}, another);
  EXPECT_THAT(of_this_test(agent->poll()), IsEmpty());
  EXPECT_EQ(agent->refused(), 1U);
}

TEST(Presence, AChildSpeaksForItself) {
  auto agent = PresenceListener::open();
  ASSERT_TRUE(agent);
  const pid_t child = ::fork();
  if (child == 0) {
    PresenceSender().announce({kRun, "worker_1", 2}, {::getpid(), 1, "boot", own_pid_namespace()});
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  const auto heard = of_this_test(agent->poll());
  ASSERT_THAT(heard, SizeIs(1));
  EXPECT_EQ(heard[0].second.pid, child);
}

TEST(Presence, WithoutAgentsItCostsNothingAndFailsNothing) {
  const PresenceSender sender;
  for (int i = 0; i < 1000; ++i) sender.announce({kRun, "worker_0", 1}, this_one());
}

TEST(Presence, AFloodIsReadInPieces) {
  auto agent = PresenceListener::open();
  ASSERT_TRUE(agent);
  const PresenceSender sender;
  for (int i = 0; i < 5000; ++i) sender.announce({kRun, "worker_0", 1}, this_one());
  EXPECT_LE(agent->poll().size(), 4096U);  // and the sender never waited
}

TEST(Presence, AllPlacesTaken) {
  std::vector<PresenceListener> agents;
  for (int i = 0; i < kAgentsPerMachine; ++i) {
    auto one = PresenceListener::open();
    if (one) agents.push_back(std::move(*one));
  }
  const auto more = PresenceListener::open();
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, core::Code::resource_exhausted);
}

}  // namespace
}  // namespace tocsin::collectors
