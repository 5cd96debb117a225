#include "actions/stop/stop_ledger.h"

#include <gtest/gtest.h>

#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using namespace testing_support;
using Leave = StopLedger::Leave;

core::Command stop_of(const core::RunUid& run, std::uint32_t attempt = 1,
                      core::WallTime at = kStart, const std::string& launch = "aa/1") {
  core::Command out;
  out.command_id = core::command_id(run, attempt, "stop");
  out.action = "stop";
  out.run = run;
  out.attempt = attempt;
  out.revision = attempt;
  out.issued_at = at;
  out.expires_at = at + 10min;
  out.requested_by = "router";
  if (!launch.empty()) out.launch = {{"n1", launch}};
  return out;
}

core::RunUid run(int number) { return core::run_uid_for("job", std::to_string(number)); }

core::JobEvent running(std::uint32_t attempt, const std::string& launch) {
  core::JobEvent out;
  out.phase = core::JobPhase::heartbeat;
  out.run.uid = run(1);
  out.run.attempt = attempt;
  out.launch = {{"n1", launch}};
  return out;
}

TEST(StopLedger, AnAttemptIsAskedOnce) {
  StopLedger ledger;
  EXPECT_EQ(ledger.reserve(stop_of(run(1)), {}).leave, Leave::send);
  EXPECT_EQ(ledger.reserve(stop_of(run(1)), {}).leave, Leave::already_requested);
  EXPECT_EQ(ledger.reserve(stop_of(run(1), 2), {}).leave, Leave::send);
}

TEST(StopLedger, AnOlderAttemptNeverTakesTheSlotOfANewerOne) {
  StopLedger ledger;
  ledger.on_command(stop_of(run(1), 7));
  const auto answer = ledger.reserve(stop_of(run(1), 5), {});
  EXPECT_EQ(answer.leave, Leave::newer_attempt);
  EXPECT_EQ(answer.newest_attempt, 7u);
  ledger.on_command(stop_of(run(1), 5));  // a late record of the topic
  EXPECT_EQ(ledger.reserve(stop_of(run(1), 5), {}).leave, Leave::newer_attempt);
}

TEST(StopLedger, TheLimitAndWhatWasSentSurviveARestart) {
  const StopLimit two{2, 10min};
  StopLedger before;
  std::vector<core::Command> topic;
  for (int i = 0; i < 2; ++i) {
    topic.push_back(stop_of(run(i), 1, kStart + i * 1min));
    EXPECT_EQ(before.reserve(topic.back(), two).leave, Leave::send);
  }
  StopLedger after;
  for (const auto& command : topic) after.on_command(command);
  EXPECT_EQ(after.reserve(stop_of(run(0), 1, kStart + 2min), two).leave, Leave::already_requested);
  const auto third = after.reserve(stop_of(run(2), 1, kStart + 2min), two);
  EXPECT_EQ(third.leave, Leave::held_back);
  EXPECT_EQ(third.recent, 2u);
  EXPECT_EQ(after.reserve(stop_of(run(2), 1, kStart + 10min + 1s), two).leave, Leave::send);
}

TEST(StopLedger, CommandsOfPeopleDryRunsAndOtherActionsDoNotUseTheLimitUp) {
  StopLedger ledger;
  auto by_hand = stop_of(run(1));
  by_hand.requested_by = "ada";
  auto dry = stop_of(run(2));
  dry.dry_run = true;
  auto capture = stop_of(run(3));
  capture.action = "capture";
  for (const auto& one : {by_hand, dry, capture}) ledger.on_command(one);
  EXPECT_EQ(ledger.reserve(stop_of(run(4)), {1, 10min}).leave, Leave::send);
  EXPECT_EQ(ledger.reserve(stop_of(run(1)), {9, 10min}).leave, Leave::already_requested);
}

TEST(StopLedger, WhatCouldNotBeWrittenIsNotRemembered) {
  StopLedger ledger;
  auto first = stop_of(run(1));
  EXPECT_EQ(ledger.reserve(first, {1, 10min}).leave, Leave::send);
  ledger.release(first);
  EXPECT_EQ(ledger.reserve(stop_of(run(2)), {1, 10min}).leave, Leave::send);
  auto second = stop_of(run(2), 2);
  second.revision = ledger.reserve(second, {9, 10min}).revision;
  ledger.release(second);  // what stood there before is there again
  EXPECT_EQ(ledger.reserve(stop_of(run(2)), {9, 10min}).leave, Leave::already_requested);
}

TEST(StopLedger, TheRevisionOfASlotAlwaysGrows) {
  StopLedger ledger;
  EXPECT_EQ(ledger.reserve(stop_of(run(1), 1), {9, 1h}).revision, 1u);
  EXPECT_EQ(ledger.resend(running(1, "aa/2"), kStart)->revision, 2u);
  EXPECT_EQ(ledger.reserve(stop_of(run(1), 2), {9, 1h}).revision, 3u);
  EXPECT_EQ(ledger.reserve(stop_of(run(1), 1'764'000'000), {9, 1h}).revision, 1'764'000'000u);
}

TEST(StopLedger, WorkersThatStartLaterAreToldToo) {
  StopLedger ledger;
  ledger.reserve(stop_of(run(1)), {});
  EXPECT_FALSE(ledger.resend(running(1, "aa/1"), kStart));          // the launch that was asked
  EXPECT_FALSE(ledger.resend(running(2, "aa/2"), kStart));          // another attempt
  EXPECT_FALSE(ledger.resend(running(1, "aa/2"), kStart + 10min));  // void by now
  const auto again = ledger.resend(running(1, "aa/2"), kStart + 1min);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->command_id, stop_of(run(1)).command_id);
  EXPECT_EQ(again->launch.at("n1"), "aa/2");
  EXPECT_EQ(again->issued_at, kStart);  // its deadlines stay
  EXPECT_FALSE(ledger.resend(running(1, "aa/2"), kStart + 1min));
  ledger.release(*again);
  EXPECT_TRUE(ledger.resend(running(1, "aa/2"), kStart + 1min));
}

TEST(StopLedger, AStopOfAPersonReachesLaterWorkersAndIsPutOffToo) {
  StopLedger ledger;
  auto by_hand = stop_of(run(1));
  by_hand.requested_by = "ada@node-7";
  ledger.on_command(by_hand);
  const auto again = ledger.resend(running(1, "aa/2"), kStart + 1s);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->requested_by, "ada@node-7");
  EXPECT_EQ(again->revision, 2u);
  EXPECT_EQ(ledger.put_off(*again)->revision, 3u);
}

TEST(StopLedger, WhatOpensAfterTheStopIsTheNextLaunch) {
  StopLedger ledger;
  ledger.reserve(stop_of(run(1)), {});
  auto later = running(1, "aa/2");
  later.time = kStart + 13s;  // a rank of the next launch, taken into the same attempt
  EXPECT_FALSE(ledger.resend(later, kStart + 13s));
  later.time = kStart + 2s;  // one of this launch, heard of late
  EXPECT_TRUE(ledger.resend(later, kStart + 13s));
}

TEST(StopLedger, ALaterStepIsAnotherRevisionOfWhatStandsThere) {
  StopLedger ledger;
  auto held = stop_of(run(1));
  held.revision = ledger.reserve(held, {}).revision;
  auto later = held;
  later.args = core::ValueMap{{"not_before_step", std::int64_t{50}}};
  const auto written = ledger.put_off(later);
  ASSERT_TRUE(written);
  EXPECT_EQ(written->revision, held.revision + 1);
  EXPECT_EQ(written->args, later.args);
  EXPECT_FALSE(ledger.put_off(later));  // an older revision by now
  EXPECT_EQ(ledger.resend(running(1, "aa/2"), kStart)->args, later.args);
  ledger.on_withdrawn(run(1));
  later.revision += 2;
  EXPECT_FALSE(ledger.put_off(later));
}

TEST(StopLedger, AWithdrawnStopIsNotAskedAgain) {
  StopLedger ledger;
  ledger.reserve(stop_of(run(1)), {});
  ledger.on_withdrawn(run(1));
  EXPECT_EQ(ledger.reserve(stop_of(run(1)), {}).leave, Leave::withdrawn);
  EXPECT_EQ(ledger.reserve(stop_of(run(1), 1, kStart, "aa/2"), {}).leave, Leave::withdrawn);
  EXPECT_FALSE(ledger.resend(running(1, "aa/2"), kStart));
  EXPECT_EQ(ledger.reserve(stop_of(run(1), 2), {}).leave, Leave::send);
}

TEST(StopLedger, ForgetsWhatTheTopicHasForgotten) {
  StopLedger ledger;
  for (int i = 0; i < 100; ++i) ledger.on_command(stop_of(run(i), 1, kStart + i * 24h));
  const StopLimit limit{1000, 1h};
  EXPECT_EQ(ledger.reserve(stop_of(run(92), 1, kStart + 99 * 24h), limit).leave,
            Leave::already_requested);
  EXPECT_EQ(ledger.reserve(stop_of(run(91), 1, kStart + 99 * 24h), limit).leave, Leave::send);
}

}  // namespace
}  // namespace tocsin::actions
