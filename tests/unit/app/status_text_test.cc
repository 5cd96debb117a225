// What `tocsin status` says where there are thousands of runs.
#include "app/view/status_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/json.h"
#include "tests/support/record_fixture.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

const core::WallTime kToday = core::WallTime{} + 20'000h;

core::JobEvent job_of_many(int number, core::JobPhase phase, core::WallTime time) {
  core::JobEvent out;
  out.phase = phase;
  out.run.uid = core::run_uid_v5("one of many " + std::to_string(number));
  out.run.attempt = 1;
  out.run.job = "job-" + std::to_string(number);
  out.time = time;
  return out;
}

void apply(TopicView& view, const core::JobEvent& event) {
  view.apply(ingest::fixture::view_of(ingest::encode_registry(event, "c")));
}

void apply_stop(TopicView& view, const core::RunUid& run, core::WallTime issued_at) {
  core::Command command;
  command.command_id = "cmd_" + core::to_text(run);
  command.action = "stop";
  command.run = run;
  command.issued_at = issued_at;
  command.reason.rule = "overfit";
  view.apply(ingest::fixture::view_of(ingest::encode_command(command, "test")));
}

std::size_t lines_with(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

TEST(StatusText, OfManyRunsThoseThatGoOnComeFirstAndTheRestIsCounted) {
  TopicView view;
  for (int i = 0; i < 200; ++i) {
    apply(view, job_of_many(i, core::JobPhase::ended, kToday - std::chrono::minutes(i)));
  }
  apply(view, job_of_many(1000, core::JobPhase::heartbeat, kToday - 3h));
  const std::string some = status_text(view, "here", kToday);
  EXPECT_EQ(lines_with(some, "job-"), kStatusLines);
  EXPECT_LT(some.find("job-1000 "), some.find("job-0 "));
  EXPECT_NE(some.find("… and 161 more: --all\n"), std::string::npos) << some;
  const std::string all = status_text(view, "here", kToday, 100'000);
  EXPECT_EQ(lines_with(all, "job-"), 201U);
  EXPECT_EQ(all.find("more: --all"), std::string::npos);
}

TEST(StatusText, StopsAreShownAsLongAsTheirRuns) {
  TopicView view;
  const auto old = job_of_many(1, core::JobPhase::ended, kToday - 25h);
  const auto now = job_of_many(2, core::JobPhase::ended, kToday - 23h);
  apply(view, old);
  apply(view, now);
  apply_stop(view, old.run.uid, kToday - 26h);
  apply_stop(view, now.run.uid, kToday - 26h);
  const std::string text = status_text(view, "here", kToday);
  EXPECT_EQ(lines_with(text, "rule overfit"), 1U) << text;
  const std::string json = status_json(view, "here", kToday);
  EXPECT_EQ(lines_with(json, "command_id"), 1U) << json;
}

core::RuleStatusEvent status_of(const core::JobEvent& job, core::RuleState state) {
  core::RuleStatusEvent out;
  out.run = job.run;
  out.rule = "overfit";
  out.status = state;
  return out;
}

// Fifty rules of each run of a year: only what somebody is told of is held.
TEST(TopicView, RulesThatHaveNothingToSayAreNotKept) {
  TopicView view;
  const auto job = job_of_many(1, core::JobPhase::heartbeat, kToday);
  const auto judge = [&](core::RuleState state) {
    core::RuleStatusEvent event = status_of(job, state);
    if (state == core::RuleState::error) event.reason = "out of memory";
    view.apply(ingest::fixture::view_of(ingest::encode_rule_status(event, "c")));
    return view.rules().size();
  };
  EXPECT_EQ(judge(core::RuleState::in_progress), 0U);
  EXPECT_EQ(judge(core::RuleState::error), 1U);
  EXPECT_EQ(judge(core::RuleState::in_progress), 0U) << "a rule that has recovered";
  EXPECT_EQ(judge(core::RuleState::error), 1U);
  apply(view, job_of_many(1, core::JobPhase::ended, kToday));
  EXPECT_EQ(view.rules().size(), 0U) << "nobody mends it any more";
  EXPECT_EQ(judge(core::RuleState::error), 0U);
}

core::Command pause(const core::RunUid& run, std::uint32_t attempt, const char* args) {
  core::Command out;
  out.command_id = "cmd_pause";
  out.action = "capture/pause";
  out.run = run;
  out.attempt = attempt;
  out.requested_by = "ada@node-7";
  out.args = *core::parse_json(args, 1 << 16);
  return out;
}

TEST(StatusText, APauseIsShownWhileItHolds) {
  const auto status = [](std::uint32_t attempt, const char* args, bool taken_back) {
    TopicView view;
    core::JobEvent run = job_of_many(1, core::JobPhase::heartbeat, kToday);
    run.step = 50;
    apply(view, run);
    view.apply(ingest::fixture::view_of(
        ingest::encode_command(pause(run.run.uid, attempt, args), "test")));
    if (taken_back) {
      view.apply(ingest::fixture::view_of(ingest::withdraw_command(run.run.uid, "capture/pause")));
    }
    return status_text(view, "here", kToday);
  };
  const std::string shown = "running, capture paused by ada@node-7";
  EXPECT_NE(status(1, R"({"pause":true})", false).find(shown), std::string::npos);
  EXPECT_NE(status(1, R"({"pause":true,"until_step":60})", false).find(shown), std::string::npos);
  EXPECT_EQ(status(1, R"({"pause":true,"until_step":50})", false).find("paused"), std::string::npos)
      << "its steps are over";
  EXPECT_EQ(status(2, R"({"pause":true})", false).find("paused"), std::string::npos)
      << "of another attempt";
  EXPECT_EQ(status(1, R"({"pause":true})", true).find("paused"), std::string::npos);
}

}  // namespace
}  // namespace tocsin::app
