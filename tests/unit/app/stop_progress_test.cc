// How far a stop has come, as the person who waits for it is told.
#include "app/view/stop_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

const core::RunUid kStopped = core::run_uid_v5("stop progress");
const core::WallTime kStopAsked = core::WallTime{} + 1000h;

core::Command asked(std::uint64_t revision = 3) {
  core::Command out;
  out.command_id = "cmd_one";
  out.run = kStopped;
  out.attempt = 2;
  out.revision = revision;
  out.issued_at = kStopAsked;
  out.expires_at = kStopAsked + 10min;
  return out;
}

core::Ack says(std::uint32_t rank, const std::string& phase, const std::string& reason = "",
               std::uint64_t revision = 3) {
  core::Ack out;
  out.command_id = "cmd_one";
  out.run = kStopped;
  out.rank = rank;
  out.phase = phase;
  out.reason = reason;
  out.revision = revision;
  return out;
}

core::JobEvent job_of(core::JobPhase phase, std::uint32_t attempt, const std::string& outcome) {
  core::JobEvent out;
  out.phase = phase;
  out.run.uid = kStopped;
  out.run.attempt = attempt;
  out.outcome = outcome;
  return out;
}

TEST(StopProgress, IsOverWhenEveryRankHasStopped) {
  StopProgress progress(asked(), 2);
  EXPECT_EQ(progress.sentence(kStopAsked), "no rank has replied yet");
  for (const std::uint32_t rank : {0U, 1U}) {
    progress.on_ack(says(rank, "received"));
    progress.on_ack(says(rank, "accepted"));
  }
  progress.on_ack(says(0, "stopped"));
  EXPECT_EQ(progress.end(kStopAsked), StopEnd::open);
  EXPECT_EQ(progress.sentence(kStopAsked), "1 of 2 ranks have stopped, 1 accepted it");
  progress.on_ack(says(1, "stopped"));
  EXPECT_EQ(progress.end(kStopAsked + 1h), StopEnd::stopped);
}

TEST(StopProgress, TheEndOfTheJobIsProofAndThatOfAnotherAttemptIsNone) {
  StopProgress progress(asked(), 4);
  progress.on_job(job_of(core::JobPhase::ended, 1, "failed"));
  progress.on_job(job_of(core::JobPhase::heartbeat, 2, ""));
  EXPECT_EQ(progress.end(kStopAsked), StopEnd::open);
  progress.on_job(job_of(core::JobPhase::ended, 2, "stopped_by_rule"));
  EXPECT_EQ(progress.end(kStopAsked), StopEnd::stopped);
  EXPECT_EQ(progress.sentence(kStopAsked), "the run has ended: stopped_by_rule");
}

TEST(StopProgress, ANewerAttemptIsNotTheOneThatWasAsked) {
  StopProgress progress(asked(), 1);
  progress.on_job(job_of(core::JobPhase::started, 3, ""));
  EXPECT_EQ(progress.end(kStopAsked), StopEnd::replaced);
  EXPECT_THAT(progress.sentence(kStopAsked),
              HasSubstr("attempt 3 of the run has started meanwhile"));
}

TEST(StopProgress, RefusedIsWhatEveryRankRefuses) {
  StopProgress progress(asked(), 2);
  progress.on_ack(says(0, "refused", "stale"));
  progress.on_ack(says(1, "refused", "too_late"));  // a later step follows
  EXPECT_EQ(progress.end(kStopAsked), StopEnd::open);
  EXPECT_FALSE(progress.on_command(asked(3)));
  EXPECT_TRUE(progress.on_command(asked(4)));
  progress.on_ack(says(0, "refused", "stale", 3));  // of the revision before
  progress.on_ack(says(1, "refused", "stale", 4));
  EXPECT_EQ(progress.end(kStopAsked), StopEnd::open);
  progress.on_ack(says(0, "refused", "stale", 4));
  EXPECT_EQ(progress.end(kStopAsked), StopEnd::refused);
  EXPECT_THAT(progress.sentence(kStopAsked), HasSubstr("refused it: stale"));
}

TEST(StopProgress, WhatNobodyTookInTimeIsVoidAndWhatSomebodyObeysIsNot) {
  StopProgress progress(asked(), 1);
  progress.on_ack(says(0, "received"));
  EXPECT_EQ(progress.end(kStopAsked + 10min), StopEnd::expired);
  progress.on_ack(says(0, "checkpointing"));
  EXPECT_EQ(progress.end(kStopAsked + 10min), StopEnd::open);
  EXPECT_EQ(progress.sentence(kStopAsked + 10min), "the run accepted it");
}

TEST(StopProgress, ItsFailureIsTheIssueThatPeopleAreTold) {
  StopProgress progress(asked(), 1);
  core::Issue issue;
  issue.rule = "stop_failed";
  issue.run.uid = kStopped;
  issue.run.attempt = 2;
  issue.time = kStopAsked - 1s;  // of a stop before this one
  issue.summary = "digits was not stopped";
  progress.on_issue(issue);
  EXPECT_EQ(progress.end(kStopAsked), StopEnd::open);
  issue.time = kStopAsked + 1s;
  progress.on_issue(issue);
  EXPECT_EQ(progress.end(kStopAsked), StopEnd::failed);
  EXPECT_EQ(progress.sentence(kStopAsked), "digits was not stopped");
}

TEST(StopProgress, AnswersToOtherStopsAreNotItsOwn) {
  StopProgress progress(asked(), 1);
  core::Ack other = says(0, "stopped");
  other.command_id = "cmd_two";
  EXPECT_FALSE(progress.on_ack(other));
  EXPECT_FALSE(progress.answered());
}

}  // namespace
}  // namespace tocsin::app
