// The checkpoint of a stop, with the host on which it lies: in `status` and in a run's report.
#include <gtest/gtest.h>

#include <string>

#include "app/view/status_text.h"
#include "app/view/topic_view.h"
#include "tests/support/record_fixture.h"

namespace tocsin::app {
namespace {

const core::WallTime kCheckpointDay = core::WallTime{} + std::chrono::hours(20'000);

core::JobEvent stopped_run() {
  core::JobEvent out;
  out.phase = core::JobPhase::ended;
  out.run.uid = core::run_uid_v5("a stopped run");
  out.run.attempt = 2;
  out.run.job = "digits";
  out.outcome = "stopped_by_person";
  out.time = kCheckpointDay;
  return out;
}

core::Command stop_of(const core::JobEvent& run) {
  core::Command out;
  out.command_id = "cmd_1";
  out.action = "stop";
  out.run = run.run.uid;
  out.attempt = run.run.attempt;
  out.issued_at = kCheckpointDay;
  out.requested_by = "ada@node-7";
  return out;
}

core::Ack answer(const core::JobEvent& run, const std::string& phase, const std::string& path) {
  core::Ack out;
  out.command_id = "cmd_1";
  out.action = "stop";
  out.phase = phase;
  out.run = run.run.uid;
  out.attempt = run.run.attempt;
  out.node = "node-3";
  out.step = 357;
  out.checkpoint_path = path;
  out.time = kCheckpointDay;
  return out;
}

TEST(StatusCheckpoint, StaysWhenLaterAnswersNameNone) {
  const core::JobEvent run = stopped_run();
  for (const bool answers_first : {false, true}) {
    TopicView view;
    const auto ask = [&] {
      view.apply(ingest::fixture::view_of(ingest::encode_command(stop_of(run), "test")));
    };
    view.apply(ingest::fixture::view_of(ingest::encode_registry(run, "c")));
    if (!answers_first) ask();
    for (const auto& [phase, path] :
         {std::pair{"accepted", ""}, {"checkpoint_done", "/c/357.pt"}, {"stopped", ""}}) {
      view.apply(ingest::fixture::view_of(ingest::encode_ack(answer(run, phase, path), "test")));
    }
    if (answers_first) ask();
    const std::string text = status_text(view, "here", kCheckpointDay);
    EXPECT_NE(text.find("node-3:/c/357.pt"), std::string::npos) << text;
    EXPECT_NE(text.find("stopped_by_person"), std::string::npos) << text;
    const std::string json = status_json(view, "here", kCheckpointDay);
    EXPECT_NE(json.find(R"("checkpoint":{"path":"/c/357.pt","host":"node-3","step":357})"),
              std::string::npos)
        << json;
  }
}

TEST(StatusCheckpoint, OfAStopWithoutOneIsNull) {
  const core::JobEvent run = stopped_run();
  TopicView view;
  view.apply(ingest::fixture::view_of(ingest::encode_registry(run, "c")));
  view.apply(ingest::fixture::view_of(ingest::encode_command(stop_of(run), "test")));
  EXPECT_NE(status_json(view, "here", kCheckpointDay).find("\"checkpoint\":null"),
            std::string::npos);
}

}  // namespace
}  // namespace tocsin::app
