// What the topics say, folded: an issue that no producer resolves is over with its attempt.
#include "app/view/topic_view.h"

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

// A process that looks for a year must not keep what ended a year ago.
TEST(TopicView, ForgetsWhatIsOverAndKeepsTheRunOfWhatFires) {
  TopicView over;
  core::Issue issue = by_hand(1);
  for (const auto& record : {ingest::encode_issue(issue),
                             ingest::encode_registry(seen_job(core::JobPhase::ended, 1), "c")}) {
    over.apply(ingest::fixture::view_of(record));
  }
  EXPECT_EQ(over.outlived(over.issues().begin()->second.newest), core::Resolution::job_ended);
  over.forget(core::WallTime{});
  EXPECT_EQ(over.issues().size(), 1U) << "it ended later";
  over.forget(core::WallTime::max());
  EXPECT_TRUE(over.issues().empty());
  EXPECT_TRUE(over.runs().empty());

  TopicView firing = view_of(core::JobPhase::heartbeat, 1);
  firing.forget(core::WallTime::max());
  EXPECT_EQ(firing.issues().size(), 1U);
  EXPECT_EQ(firing.runs().size(), 1U);
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

core::Issue report(core::IssueStatus status, const std::string& summary, std::int64_t step,
                   core::Severity severity = core::Severity::error) {
  core::Issue out;
  out.event_id = "iss_" + summary;
  out.source = "/c/rules/exploding_tensor";
  out.labels = {{"rule", "exploding_tensor"}, {"run_uid", core::to_text(kSeen)}};
  out.labels.set("severity", core::to_string(severity));
  out.rule = "exploding_tensor";
  out.severity = severity;
  out.status = status;
  out.summary = summary;
  out.step = step;
  out.starts_at = out.time = core::WallTime{} + std::chrono::seconds(step);
  if (status == core::IssueStatus::resolved) {
    out.ends_at = out.time;
    out.resolution = core::Resolution::job_ended;
  }
  return out;
}

core::Issue episode_after(const std::vector<core::Issue>& reports) {
  TopicView view;
  for (const auto& one : reports) view.apply(ingest::fixture::view_of(ingest::encode_issue(one)));
  return view.issues().begin()->second.newest;
}

TEST(TopicView, AnEpisodeKeepsWhatWasFoundAndSaysTheEndBesideIt) {
  const auto fires = core::IssueStatus::firing;
  const core::Issue over =
      episode_after({report(fires, "loss is NaN", 302), report(fires, "still NaN", 310),
                     report(core::IssueStatus::resolved, "the job ended", 357)});
  EXPECT_EQ(over.summary, "loss is NaN");
  EXPECT_EQ(over.step, 302);
  EXPECT_EQ(over.event_id, "iss_loss is NaN");
  EXPECT_EQ(over.status, core::IssueStatus::resolved);
  ASSERT_TRUE(over.ending);
  EXPECT_EQ(*over.ending, (core::Ending{"the job ended", "iss_the job ended", 357, {}}));
}

TEST(TopicView, AMoreSevereReportTakesOverWhatWasFound) {
  const auto fires = core::IssueStatus::firing;
  const core::Issue now = episode_after({report(fires, "slow", 1, core::Severity::warning),
                                         report(fires, "stalled", 2, core::Severity::error),
                                         report(fires, "slow again", 3, core::Severity::warning)});
  EXPECT_EQ(now.summary, "stalled");
  EXPECT_EQ(now.severity, core::Severity::error);
}

core::StopTold stop_told_after(std::vector<core::Ack> answers, bool ended) {
  core::Command command;
  command.command_id = "cmd_1";
  command.action = "stop";
  command.run = kSeen;
  command.requested_by = "router";
  command.reason.rule = "exploding_tensor";
  command.args = core::ValueMap{{"mode", "checkpoint_then_stop"}};
  TopicView view;
  core::JobEvent job = seen_job(core::JobPhase::heartbeat, 1);
  job.world_size = 2;
  view.apply(ingest::fixture::view_of(ingest::encode_registry(job, "c")));
  for (const auto& one : answers)
    view.apply(ingest::fixture::view_of(ingest::encode_ack(one, "c")));
  view.apply(ingest::fixture::view_of(ingest::encode_command(command, "test")));
  if (ended) {
    job.phase = core::JobPhase::ended;
    view.apply(ingest::fixture::view_of(ingest::encode_registry(job, "c")));
    view.close_ended();
  }
  return view.stops().begin()->second.told;
}

core::Ack saved(std::uint32_t rank) {
  core::Ack out = answer_to_stop("checkpoint_done", 1);
  out.rank = rank;
  out.node = "node-7";
  out.step = 305;
  out.checkpoint_path = "/ckpt/305.pt";
  out.checkpoint_bytes = 42;
  return out;
}

TEST(TopicView, AStopNamesItsCheckpointWithItsHostThoughTheLastWordIsAnother) {
  core::Ack stopped = answer_to_stop("stopped", 1);
  stopped.step = 305;
  stopped.exit_code = 77;
  core::Ack also = answer_to_stop("received", 1);
  also.rank = 1;
  const core::StopTold told = stop_told_after({saved(0), stopped, also}, false);
  EXPECT_EQ(told.requested_by, "router");
  EXPECT_EQ(told.rule, "exploding_tensor");
  EXPECT_EQ(told.mode, "checkpoint_then_stop");
  EXPECT_EQ(told.state, "cooperative");  // one of two ranks has not stopped
  EXPECT_EQ(told.step, 305);
  EXPECT_EQ(told.exit_code, 77);
  EXPECT_EQ(told.checkpoint, (core::Checkpoint{"/ckpt/305.pt", "node-7", 42, 305}));
  EXPECT_EQ(told.answers, (core::StopAnswers{2, 2, 1, 1, 0}));
  EXPECT_EQ(stop_told_after({saved(0)}, true).state, "stopped");
}

TEST(TopicView, WhereEveryRankRefusesAStopItIsRefusedAndSaysWhy) {
  core::Ack refused = answer_to_stop("refused", 1);
  refused.reason = "unsupported";
  const core::StopTold told = stop_told_after({refused}, true);
  EXPECT_EQ(told.state, "refused");
  EXPECT_EQ(told.reason, "unsupported");
  EXPECT_FALSE(told.checkpoint);
}

TEST(TopicView, OnlyANewerCommandTakesARefusalBack) {
  core::Command command;
  command.command_id = "cmd_1";
  command.reason.summary = "it exploded";
  core::StopCourse stop;
  note(stop, command);
  core::Ack refused = answer_to_stop("refused", 1);
  refused.reason = "unsupported";
  note(stop, refused);
  note(stop, command);  // read again
  EXPECT_EQ(stop.told.state, "refused");
  EXPECT_EQ(stop.told.reason, "unsupported");
  command.revision = 2;
  note(stop, command);
  EXPECT_EQ(stop.told.state, "requested");
  EXPECT_EQ(stop.told.reason, "it exploded");
}

}  // namespace
}  // namespace tocsin::app
