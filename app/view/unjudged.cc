#include "app/view/unjudged.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "app/view/view_words.h"
#include "collectors/hook/hook.h"
#include "core/text_table.h"
#include "core/topics.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

// Names, and with them the job, are told again every five minutes.
constexpr core::Duration kLookBack = 10min;
constexpr core::Duration kJustNow = 1min;  // a hook's heart beats every five seconds

void note(const core::FrameView& frame, const core::FrameBody& body, UnknownRun& run) {
  const core::FrameHeader& header = frame.header();
  run.heard = std::max(run.heard, core::wall_time(header.time));
  if (header.kind == core::FrameKind::step_end && header.mode == core::Mode::train) {
    run.step = std::max(run.step, header.step);
  }
  if (const auto* life = std::get_if<core::Lifecycle>(&body)) {
    if (!life->job.empty()) run.job = life->job;
    run.over = life->event == core::LifecycleEvent::end;
  }
  if (const auto* names = std::get_if<core::Dictionary>(&body)) {
    for (const core::NamedEntry& entry : *names) {
      if (!entry.attrs.job.empty()) run.job = entry.attrs.job;
    }
  }
}

}  // namespace

Unjudged find_unjudged(ingest::Transport& transport, const std::string& journal,
                       const std::string& prefix, const TopicView& view, core::WallTime now) {
  Unjudged out;
  out.no_engine = !hook::engine_reads(journal, prefix);
  if (!out.no_engine) return out;
  ingest::SourceOptions options;
  options.topics = {core::topic::kTelemetry};
  auto source = transport.source(std::move(options));
  if (!source) return out;
  std::map<core::RunUid, UnknownRun> heard;
  ingest::JsonScalarDecoder json;
  (void)(*source)->read_all(
      core::topic::kTelemetry, 0, now - kLookBack, [&](const core::RecordView& record) {
        (void)ingest::decode_telemetry(
            record, json, [&](const core::FrameView& frame, const core::FrameBody& body) {
              const auto& header = frame.header();
              if (header.rank == core::kNodeAgentRank) return;
              note(frame, body, heard[header.run]);
            });
      });
  for (auto& [run, known] : heard) {
    const auto told = view.runs().find(run);
    const bool ended = told != view.runs().end() && told->second.phase == core::JobPhase::ended;
    if (!known.over && !ended && now - known.heard < kJustNow) ++out.going_on;
    if (!view.runs().contains(run)) out.runs.emplace(run, std::move(known));
  }
  return out;
}

std::string unjudged_text(const Unjudged& unjudged, core::WallTime now) {
  if (!unjudged.no_engine || (unjudged.going_on == 0 && unjudged.runs.empty())) return {};
  std::string out = "\nnobody judges: no engine reads this journal; start one with tocsin up\n";
  if (unjudged.runs.empty()) return out;
  std::vector<core::TableRow> rows{{"RUN", "JOB", "STEP", "LAST SEEN"}};
  for (const auto& [run, known] : unjudged.runs) {
    rows.push_back({short_run(run), core::visible(known.job),
                    known.step < 0 ? "" : std::to_string(known.step), ago(known.heard, now)});
  }
  return out + "runs that no engine knows: " + std::to_string(unjudged.runs.size()) + "\n" +
         core::text_table(rows);
}

std::string with_unjudged(std::string status, const Unjudged& unjudged) {
  core::ValueList runs;
  for (const auto& [run, known] : unjudged.runs) {
    runs.push_back(
        core::ValueMap{{"run", core::to_text(run)},
                       {"job", known.job},
                       {"step", known.step < 0 ? core::Value() : core::Value(known.step)},
                       {"last_heard_of", core::to_rfc3339(known.heard)}});
  }
  const std::string more = core::to_json(
      core::ValueMap{{"judged", !unjudged.no_engine}, {"unknown_runs", std::move(runs)}});
  status.pop_back();
  return status + "," + more.substr(1);
}

}  // namespace tocsin::app
