// The leader's ladder: cooperative first, then the platform; each rung recorded before it is taken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/actions/stops.h"

namespace tocsin::actions {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace testing_support;

/// A platform with one job, which is asked and read as a test says.
struct FakePlatform final : PlatformStop {
  [[nodiscard]] std::string_view name() const override { return "fake"; }
  [[nodiscard]] bool reaches(const core::Value& fence) const override {
    return core::text_at(fence, "platform") == "k8s-job";
  }
  PlatformAnswer carry_out(const PlatformTarget&, PlatformRung rung,
                           std::chrono::milliseconds) override {
    rungs.push_back(rung);
    if (answer.seen != PlatformSeen::running) return answer;
    const bool before = suspended;
    if (rung != PlatformRung::look) {
      if (!suspended || rung == PlatformRung::force) ++effects;
      suspended = true;
    }
    return {PlatformSeen::running, "it runs", suspended || before};
  }
  std::vector<PlatformRung> rungs;
  int effects = 0;
  bool suspended = false;
  PlatformAnswer answer{PlatformSeen::running, "", false};
};

struct FakeCaller final : PlatformCaller {
  void submit(PlatformCall call) override { calls.push_back(std::move(call)); }
  std::vector<std::pair<PlatformCall, PlatformAnswer>> take() override {
    std::vector<std::pair<PlatformCall, PlatformAnswer>> out;
    for (auto& call : calls) {
      auto answer = call.platform->carry_out(call.target, call.rung, kBudget);
      out.emplace_back(std::move(call), std::move(answer));
    }
    calls.clear();
    return out;
  }
  std::vector<PlatformCall> calls;
};

core::Command platform_command(bool allow_force = false, const char* platform = "k8s-job") {
  core::Command out = stop_command(allow_force);
  core::ValueMap args = *core::as<core::ValueMap>(out.args);
  for (auto& [name, value] : args) {
    if (name == "fence") {
      value = core::ValueMap{{"platform", platform},
                             {"uid", "u1"},
                             {"pid", 4711},
                             {"pid_start", 998877},
                             {"host", "pod-1"}};
    }
  }
  out.args = std::move(args);
  return out;
}

/// The agent as the stage uses it: what it records is durable at once.
struct Leader {
  explicit Leader(FakePlatform* shared = nullptr) : platform(shared != nullptr ? *shared : own) {}
  std::vector<StopState> note(const PlatformAgent::Steps& steps) {
    for (const auto& one : steps) {
      if (auto record = agent.record_of(one, "h1")) records.push_back(*record);
      if (!one.reason.empty()) reason = one.reason;
    }
    return states(steps);
  }
  std::vector<StopState> command(core::Duration after, const core::Command& command) {
    return note(agent.on_command(command, kStart + after));
  }
  std::vector<StopState> tick(core::Duration after) {
    auto out = note(agent.tick(kStart + after));
    agent.ask(kStart + after);
    return out;
  }
  core::NullLog log;
  Gauges telemetry;
  FakePlatform own;
  FakePlatform& platform;
  FakeCaller caller;
  PlatformAgent agent{{&platform}, caller, log, telemetry};
  std::vector<core::Ack> records;
  std::string reason;
};

TEST(PlatformAgent, ARunThatDoesNotAnswerIsEndedByItsPlatform) {
  Leader leader;
  EXPECT_THAT(leader.command(0s, platform_command()), ElementsAre(StopState::cooperative));
  EXPECT_THAT(leader.tick(29s), IsEmpty());
  EXPECT_THAT(leader.caller.calls, IsEmpty());
  EXPECT_THAT(leader.tick(30s), ElementsAre(StopState::platform_graceful));
  ASSERT_EQ(leader.caller.calls.size(), 1u);
  EXPECT_THAT(leader.tick(31s), IsEmpty());  // it was asked: that is no proof
  EXPECT_EQ(leader.platform.effects, 1);
  leader.platform.answer = {PlatformSeen::ended, "Job ml/bert is suspended, no pod is left", true};
  leader.tick(33s);
  EXPECT_THAT(leader.tick(34s), ElementsAre(StopState::stopped));
  EXPECT_EQ(leader.reason, "Job ml/bert is suspended, no pod is left");
  EXPECT_EQ(leader.platform.effects, 1);
  ASSERT_EQ(leader.records.size(), 2u);
  EXPECT_EQ(leader.records[0].action, "stop/platform");
  EXPECT_EQ(leader.records[0].phase, "platform_graceful");
  EXPECT_EQ(leader.records[1].phase, "stopped");
}

TEST(PlatformAgent, ARunThatStopsByItselfIsLeftAlone) {
  Leader leader;
  leader.command(0s, platform_command());
  leader.note(leader.agent.on_ack(ack("accepted"), kStart + 1s));
  leader.tick(60s);
  leader.note(leader.agent.on_ack(ack("stopped"), kStart + 61s));
  leader.tick(10min);
  EXPECT_THAT(leader.platform.rungs, IsEmpty());
  EXPECT_THAT(leader.records, IsEmpty());
}

// The rung is only taken once its record is durable: the stage asks then.
TEST(PlatformAgent, NothingIsAskedBeforeItIsRecorded) {
  Leader leader;
  leader.command(0s, platform_command());
  EXPECT_THAT(states(leader.agent.tick(kStart + 30s)), ElementsAre(StopState::platform_graceful));
  EXPECT_THAT(leader.caller.calls, IsEmpty());
  leader.agent.ask(kStart + 30s);
  EXPECT_EQ(leader.caller.calls.size(), 1u);
}

// kill -9 at any moment, and all that is durable is read again.
TEST(PlatformAgent, ARestartLeadsToNoSecondStop) {
  FakePlatform platform;
  std::vector<core::Ack> records;
  {
    Leader before(&platform);
    before.command(0s, platform_command());
    before.tick(30s);
    records = before.records;  // recorded, and not asked yet
  }
  EXPECT_EQ(platform.effects, 0);
  for (const core::Duration restart : {core::Duration(40s), core::Duration(50s)}) {
    Leader after(&platform);
    after.agent.started(kStart + restart);
    for (const auto& record : records) after.agent.on_ack(record, kStart + restart);
    after.command(restart, platform_command());
    EXPECT_THAT(after.tick(restart), IsEmpty());
    EXPECT_THAT(after.tick(restart + 1s), IsEmpty());
    EXPECT_EQ(platform.effects, 1) << "asked once, whichever process it was";
  }
}

TEST(PlatformAgent, AStopUnderWayDoesNotExpireWhileTheLeaderIsAway) {
  FakePlatform platform;
  Leader before(&platform);
  before.command(0s, platform_command());
  before.tick(30s);
  Leader after(&platform);
  after.agent.started(kStart + 11min);
  after.command(11min, platform_command());
  for (const auto& record : before.records) after.agent.on_ack(record, kStart + 11min);
  platform.answer = {PlatformSeen::ended, "gone", true};
  EXPECT_THAT(after.tick(11min), IsEmpty()) << "it is looked at first";
  EXPECT_THAT(after.tick(11min + 1s), ElementsAre(StopState::stopped));
}

TEST(PlatformAgent, WhatIsAnotherNowIsNeverStopped) {
  Leader leader;
  leader.platform.answer = {PlatformSeen::stale, "Job ml/bert is another object now", false};
  leader.command(0s, platform_command());
  leader.tick(30s);
  EXPECT_THAT(leader.tick(31s), ElementsAre(StopState::rejected_stale));
  EXPECT_EQ(leader.platform.effects, 0);
  const auto issue = stop_failed_issue({"cmd_one",
                                        kRun,
                                        1,
                                        StopState::platform_graceful,
                                        StopState::rejected_stale,
                                        leader.reason,
                                        kStart + 31s,
                                        "bert",
                                        {},
                                        "r"},
                                       "c1");
  ASSERT_TRUE(issue);
  EXPECT_THAT(issue->summary, HasSubstr("Job ml/bert is another object now"));
}

// Records are read back from the topic, by then the stop may be over.
TEST(PlatformAgent, ARecordThatComesBackLateAsksNothing) {
  Leader leader;
  leader.platform.answer = {PlatformSeen::ended, "gone", true};
  leader.command(0s, platform_command());
  leader.tick(30s);
  EXPECT_THAT(leader.tick(31s), ElementsAre(StopState::already_ended));
  const auto records = leader.records;
  for (const auto& record : records) leader.note(leader.agent.on_ack(record, kStart + 32s));
  leader.tick(33s);
  leader.tick(1min);
  EXPECT_EQ(leader.platform.rungs.size(), 1u);
}

// What was asked has gone, and somebody has made another one of that name since.
TEST(PlatformAgent, ASuccessorOfWhatWasAskedIsAnEnd) {
  Leader leader;
  leader.command(0s, platform_command());
  leader.tick(30s);
  leader.tick(31s);
  EXPECT_EQ(leader.platform.effects, 1);
  leader.platform.answer = {PlatformSeen::stale, "another", false};
  leader.tick(40s);
  EXPECT_THAT(leader.tick(41s), ElementsAre(StopState::stopped));
}

TEST(PlatformAgent, ForceOnlyWhereItIsAllowed) {
  Leader gentle;
  gentle.command(0s, platform_command(false));
  for (const auto at : {30s, 31s, 60s, 120s}) gentle.tick(at);
  EXPECT_THAT(gentle.tick(3min), ElementsAre(StopState::failed));
  EXPECT_EQ(
      gentle.reason,
      "still running after the platform's stop, its forced stop is not allowed (allow_force)");
  EXPECT_EQ(gentle.platform.effects, 1);

  Leader forceful;
  forceful.command(0s, platform_command(true));
  for (const auto at : {30s, 31s, 49s}) forceful.tick(at);
  EXPECT_EQ(forceful.platform.effects, 1);
  EXPECT_THAT(forceful.tick(50s), ElementsAre(StopState::platform_force));
  forceful.tick(51s);
  EXPECT_EQ(forceful.platform.effects, 2);
  EXPECT_THAT(forceful.platform.rungs, ::testing::Contains(PlatformRung::force));
}

TEST(PlatformAgent, APlatformThatIsAwayIsAskedAgain) {
  Leader leader;
  leader.platform.answer = {PlatformSeen::unreachable, "Kubernetes cannot be asked: no route",
                            false};
  leader.command(0s, platform_command());
  leader.tick(30s);
  EXPECT_THAT(leader.tick(31s), IsEmpty());
  leader.platform.answer = {PlatformSeen::running, "", false};
  leader.tick(33s);
  leader.tick(34s);
  EXPECT_EQ(leader.platform.effects, 1);

  Leader never;
  never.platform.answer = {PlatformSeen::unreachable, "Kubernetes cannot be asked: no route",
                           false};
  never.command(0s, platform_command());
  never.tick(30s);
  never.tick(31s);
  EXPECT_THAT(never.tick(3min), ElementsAre(StopState::failed));
  EXPECT_THAT(never.reason, HasSubstr("the last answer: Kubernetes cannot be asked: no route"));
}

TEST(PlatformAgent, WhoMayNotAskIsToldAtOnce) {
  Leader leader;
  leader.platform.answer = {PlatformSeen::denied, "Kubernetes answered 403 to …", false};
  leader.command(0s, platform_command());
  leader.tick(30s);
  EXPECT_THAT(leader.tick(31s), ElementsAre(StopState::failed));
  EXPECT_EQ(leader.reason, "Kubernetes answered 403 to …");
}

TEST(PlatformAgent, ANewerAttemptEndsIt) {
  Leader leader;
  leader.command(0s, platform_command());
  core::JobEvent newer;
  newer.run.uid = kRun;
  newer.run.attempt = 2;
  newer.time = kStart + 10s;
  EXPECT_THAT(leader.note(leader.agent.on_job(newer, kStart + 10s)),
              ElementsAre(StopState::rejected_stale));
  leader.tick(1min);
  EXPECT_THAT(leader.platform.rungs, IsEmpty());
}

// A process of a node is its agent's business: here it would only be told twice.
TEST(PlatformAgent, ProcessesOfNodesArePassedOver) {
  Leader leader;
  EXPECT_THAT(leader.command(0s, platform_command(false, "local")), IsEmpty());
  EXPECT_THAT(leader.command(0s, stop_command()), IsEmpty());
  EXPECT_THAT(leader.tick(1h), IsEmpty());
}

// Nobody can end it: people hear of it all the same.
TEST(PlatformAgent, APlatformThatIsNotConfiguredIsTold) {
  Leader leader;
  leader.command(0s, platform_command(false, "flux"));
  leader.note(leader.agent.on_ack(ack("accepted"), kStart + 1s));
  EXPECT_THAT(leader.tick(3min), ElementsAre(StopState::failed));
  EXPECT_THAT(leader.reason, HasSubstr("no platform is configured"));
  EXPECT_THAT(leader.platform.rungs, IsEmpty());
}

TEST(PlatformAgent, WhatRanksAnswerIsNotItsRecord) {
  Leader leader;
  leader.command(0s, platform_command());
  core::Ack record = ack("platform_graceful");
  record.action = std::string(kPlatformAck);
  record.time = kStart + 5s;
  EXPECT_THAT(leader.note(leader.agent.on_ack(record, kStart + 5s)), IsEmpty());
  // And the ladder of a node takes no record of a platform for an answer of a rank.
  StopLadder node;
  node.on_command(stop_command(), kStart);
  EXPECT_THAT(node.on_ack(record, kStart + 5s).transitions, IsEmpty());
}

}  // namespace
}  // namespace tocsin::actions
