#include "app/view/said_of_issues.h"

#include <utility>

#include "app/view/topic_view.h"
#include "core/json.h"
#include "core/topics.h"

namespace tocsin::app {

core::Status read_said(ingest::Transport& transport, SaidOfIssues& out,
                       std::chrono::milliseconds patience, const Moment& moment) {
  ingest::SourceOptions reading;
  reading.topics = {core::topic::kIssues, core::topic::kRouterControl};
  reading.start = ingest::Start::beginning;
  auto source = transport.source(reading);
  if (!source) return source.error();
  const auto apply = [&](const core::RecordView& record) {
    if (!moment.holds(record)) return;
    out.episodes.apply(record);
    out.feedback.apply(record);
  };
  return read_to_end(**source, apply, patience);
}

std::string said_text(const SaidOfIssues& said, const std::string& id, core::WallTime now) {
  const auto episode = said.episodes.choose(id);
  if (!episode) return "";
  std::string out;
  const auto& of = episode->names;
  if (const auto* verdict = said.feedback.verdict(of.issue, of.event_id))
    out += "\nVerdict: " + verdict_text(*verdict, now) + "\n";
  const auto notes = said.feedback.notes(of.issue, of.event_id);
  if (!notes.empty()) out += "\nNotes:\n";
  for (const core::IssueNote* note : notes) out += "  " + note_text(*note, now) + "\n";
  return out;
}

std::string with_said(const SaidOfIssues& said, const std::string& id, const std::string& json) {
  auto parsed = core::parse_json(json, json.size());
  const auto* members = parsed ? core::as<core::ValueMap>(*parsed) : nullptr;
  if (members == nullptr) return json;
  core::ValueMap out = *members;
  const auto episode = said.episodes.choose(id);
  const auto of = episode ? episode->names : core::IssueEpisode{};
  out.emplace_back("verdict", verdict_value(said.feedback.verdict(of.issue, of.event_id)));
  out.emplace_back("notes", note_values(said.feedback.notes(of.issue, of.event_id)));
  return core::to_json(core::Value(std::move(out)));
}

}  // namespace tocsin::app
