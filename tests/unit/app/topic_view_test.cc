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

}  // namespace
}  // namespace tocsin::app
