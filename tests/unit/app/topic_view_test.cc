// What the topics say, folded: an issue that no producer resolves is over with its attempt.
#include "app/topic_view.h"

#include <gtest/gtest.h>

#include "actions/actions.h"
#include "tests/support/record_fixture.h"

namespace tocsin::app {
namespace {

const core::RunUid kSeen = core::run_uid_v5("topic view");

core::JobEvent seen_job(core::JobPhase phase, std::uint32_t attempt) {
  core::JobEvent out;
  out.phase = phase;
  out.run.uid = kSeen;
  out.run.attempt = attempt;
  out.run.job = "digits";
  out.time = core::WallTime{} + std::chrono::hours(attempt);
  return out;
}

core::Issue by_hand(std::uint32_t attempt) {
  core::Command command;
  command.run = kSeen;
  command.attempt = attempt;
  command.requested_by = "ada@node-7";
  return actions::stopped_by_hand_issue(command, seen_job(core::JobPhase::heartbeat, attempt), "c");
}

TopicView view_of(core::JobPhase phase, std::uint32_t attempt) {
  TopicView view;
  for (const auto& record :
       {ingest::encode_issue(by_hand(1)), ingest::encode_registry(seen_job(phase, attempt), "c")}) {
    view.apply(ingest::fixture::view_of(record));
  }
  view.close_ended();
  return view;
}

core::IssueStatus status_of(const TopicView& view) {
  return view.issues().begin()->second.newest.status;
}

TEST(TopicView, ThatAPersonStopsARunIsOverWhenTheRunIs) {
  EXPECT_EQ(status_of(view_of(core::JobPhase::heartbeat, 1)), core::IssueStatus::firing);
  EXPECT_EQ(status_of(view_of(core::JobPhase::ended, 1)), core::IssueStatus::resolved);
}

TEST(TopicView, AnIssueOfAnAttemptBeforeTheNewestIsOver) {
  const TopicView view = view_of(core::JobPhase::heartbeat, 2);
  EXPECT_EQ(status_of(view), core::IssueStatus::resolved);
  EXPECT_EQ(view.issues().begin()->second.newest.resolution, core::Resolution::superseded);
}

core::Ack answer_to_stop(const std::string& phase, std::uint32_t attempt,
                         std::uint64_t revision = 1) {
  core::Ack out;
  out.command_id = "cmd_1";
  out.action = "stop";
  out.run = kSeen;
  out.phase = phase;
  out.attempt = attempt;
  out.revision = revision;
  return out;
}

std::string stop_after(const std::vector<core::Ack>& answers) {
  core::Command command;
  command.command_id = "cmd_1";
  command.action = "stop";
  command.run = kSeen;
  TopicView view;
  view.apply(ingest::fixture::view_of(ingest::encode_command(command, "test")));
  for (const auto& one : answers)
    view.apply(ingest::fixture::view_of(ingest::encode_ack(one, "c")));
  return view.stops().begin()->second.newest->phase;
}

TEST(TopicView, ARelaunchThatRefusesTheStopBeforeItHasNotUndoneIt) {
  EXPECT_EQ(stop_after({answer_to_stop("stopped", 1), answer_to_stop("refused", 2)}), "stopped");
  EXPECT_EQ(stop_after({answer_to_stop("accepted", 1), answer_to_stop("received", 1)}), "accepted");
  EXPECT_EQ(stop_after({answer_to_stop("received", 1), answer_to_stop("refused", 1)}), "refused");
  EXPECT_EQ(stop_after({answer_to_stop("stopping", 1), answer_to_stop("refused", 1, 2)}),
            "refused");
}

}  // namespace
}  // namespace tocsin::app
