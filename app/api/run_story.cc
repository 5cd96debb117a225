#include "app/api/run_story.h"

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>
#include <variant>

#include "core/fields/issue_feedback.h"
#include "core/fields/run_note.h"
#include "core/fields/run_pin.h"
#include "core/json.h"
#include "core/topics.h"
#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

using core::Value;
using core::ValueList;
using core::ValueMap;

core::WallTime wall_of_micros(std::int64_t micros) {
  return core::WallTime(
      std::chrono::duration_cast<core::WallTime::duration>(std::chrono::microseconds(micros)));
}
Value moment_value(const std::optional<std::int64_t>& micros) {
  return micros ? Value(core::to_rfc3339(wall_of_micros(*micros))) : Value();
}
Value integer_or_null(const std::optional<std::int64_t>& number) {
  return number ? Value(*number) : Value();
}
Value word_or_null(const std::string& text) { return text.empty() ? Value() : Value(text); }

Value pin_or_null(const std::optional<core::RunPin>& pin) {
  if (!pin) return {};
  return ValueMap{{"by", pin->by}, {"at", core::to_rfc3339(pin->at)}, {"origin", pin->origin}};
}

std::string severity_word(std::int64_t grade) {
  const std::int64_t last = static_cast<std::int64_t>(core::Severity::critical);
  return grade < 0 || grade > last
             ? ""
             : std::string(core::to_string(static_cast<core::Severity>(grade)));
}

// What a run that has ended, or goes on with a later attempt, leaves behind fires no more.
bool issue_is_open(const insights::IssueLine& issue, const insights::RunLine* run) {
  if (!issue.firing) return false;
  return run == nullptr || (run->phase != "ended" && issue.attempt >= run->attempt);
}

Value saved_checkpoint(const core::StopTold& told) {
  if (!told.checkpoint) return {};
  return ValueMap{{"path", told.checkpoint->path},
                  {"host", word_or_null(told.checkpoint->host)},
                  {"bytes", static_cast<std::int64_t>(told.checkpoint->bytes)},
                  {"step", integer_or_null(told.checkpoint->step)}};
}

/// A line of the history.
struct SaidLine {
  std::string kind, text, detail;
};
// What somebody said of an issue or the run; nullopt: the record is another.
std::optional<SaidLine> said_line(const core::RecordView& record) {
  const std::string_view key = record.key.value_or("");
  if (key.starts_with(core::kPinPrefix)) {
    if (record.tombstone)
      return SaidLine{"pin", "the pin was taken away", "it is kept no longer than other runs"};
    const auto pin = core::read_run_pin(record.text());
    if (!pin) return std::nullopt;
    return SaidLine{"pin", pin->by + " pinned the run", "it is kept until the pin is taken away"};
  }
  if (record.tombstone) return std::nullopt;
  if (key.starts_with(core::kVerdictPrefix)) {
    const auto verdict = core::read_issue_verdict(record.text());
    if (!verdict) return std::nullopt;
    return SaidLine{"verdict", verdict->by + ": " + verdict->verdict, verdict->note};
  }
  if (key.starts_with(core::kRunNotePrefix)) {
    const auto note = core::read_run_note(record.text());
    if (!note) return std::nullopt;
    return SaidLine{"note", note->by + ": " + note->text, ""};
  }
  if (!key.starts_with(core::kNotePrefix)) return std::nullopt;
  const auto note = core::read_issue_note(record.text());
  if (!note) return std::nullopt;
  return SaidLine{"note", note->by + ": " + note->text, ""};
}

}  // namespace

Value issue_row(const insights::IssueLine& issue, const insights::RunLine* run) {
  return ValueMap{{"key", issue.key},
                  {"episode", issue.episode.value_or(issue.ordinal)},
                  {"event_id", issue.event_id},
                  {"rule", issue.rule},
                  {"severity", severity_word(issue.severity)},
                  {"status", issue_is_open(issue, run) ? "firing" : "resolved"},
                  {"first_sign", issue.first_sign},
                  {"summary", issue.summary},
                  {"attempt", issue.attempt},
                  {"mode", word_or_null(issue.mode)},
                  {"step", integer_or_null(issue.step)},
                  {"tensor", word_or_null(issue.tensor)},
                  {"worker", word_or_null(issue.worker)},
                  {"starts_at", moment_value(issue.opened)},
                  {"ends_at", moment_value(issue.closed)},
                  {"reports", issue.reports}};
}

Value run_row(const insights::RunLine& run, const std::vector<insights::IssueLine>& issues) {
  // The worst that fires, else the worst of the newest attempt; of equals the first.
  const insights::IssueLine* head = nullptr;
  const auto rank = [&](const insights::IssueLine& one) {
    return std::tuple(issue_is_open(one, &run), one.attempt, one.severity);
  };
  for (const auto& one : issues) {
    if (head == nullptr || rank(one) > rank(*head)) head = &one;
  }
  auto labels = core::parse_json(run.labels, run.labels.size());
  return ValueMap{{"uid", run.uid},
                  {"job", word_or_null(run.job)},
                  {"labels", labels ? std::move(*labels) : Value(ValueMap{})},
                  {"state", run.phase == "ended" ? "ended" : "running"},
                  {"outcome", word_or_null(run.outcome)},
                  {"attempt", run.attempt},
                  {"world_size", run.world},
                  {"step", integer_or_null(run.step)},
                  {"started_at", moment_value(run.started)},
                  {"ended_at", moment_value(run.ended)},
                  {"heard_at", moment_value(run.heard)},
                  {"issues", ValueMap{{"open", run.open_issues}, {"total", run.issues}}},
                  {"told", run.told},
                  {"pin", pin_or_null(run.pin)},
                  {"headline", head == nullptr ? Value() : issue_row(*head, &run)}};
}

RunStory::RunStory(const std::vector<insights::KeptRecord>& events, const std::string& event_id) {
  if (!event_id.empty()) view_.look_for(event_id);
  for (const auto& kept : events) {
    const core::RecordView record = kept.view();
    view_.apply(record);
    deliveries_.saw(record, view_);
    changes_.saw(record);
    note(kept);
  }
  view_.close_ended();
}

void RunStory::line(std::int64_t at, std::string kind, std::string text, std::string detail,
                    ValueMap more) {
  ValueMap out{{"time", core::to_rfc3339(core::wall_time(at))},
               {"kind", std::move(kind)},
               {"text", std::move(text)},
               {"detail", word_or_null(detail)}};
  for (auto& member : more) out.push_back(std::move(member));
  lines_.push_back(std::move(out));
}

void RunStory::note_event(const insights::KeptRecord& kept) {
  const auto decoded = ingest::decode_event(kept.view());
  if (!decoded) return;
  if (const auto* issue = std::get_if<core::Issue>(&decoded->event)) {
    const bool fires = issue->status == core::IssueStatus::firing;
    const std::string said = issue->ending ? issue->ending->summary : issue->summary;
    line(kept.timestamp, "issue", fires ? issue->summary : said,
         fires ? issue->rule : issue->rule + ": " + std::string(core::to_string(issue->resolution)),
         {{"key", core::issue_key(issue->labels)},
          {"event_id", issue->event_id},
          {"severity", std::string(core::to_string(issue->severity))},
          {"state", std::string(core::to_string(issue->status))},
          {"step", integer_or_null(issue->step)}});
  } else if (const auto* job = std::get_if<core::JobEvent>(&decoded->event)) {
    attempts_.saw(*job);
    if (job->phase == core::JobPhase::heartbeat) return;
    const bool began = job->phase == core::JobPhase::started;
    // The same event stands in two topics: its own time is one.
    line(job->time.time_since_epoch() / std::chrono::nanoseconds(1), "run",
         began ? "the run started" : "the run ended",
         began ? std::to_string(job->world_size) + (job->world_size == 1 ? " rank" : " ranks")
               : job->outcome,
         {{"step", integer_or_null(job->step)}});
  } else if (const auto* rule = std::get_if<core::RuleStatusEvent>(&decoded->event)) {
    rules_.saw(*rule);
  }
}

void RunStory::note(const insights::KeptRecord& kept) {
  const std::string& topic = kept.record.topic;
  const core::RecordView record = kept.view();
  if (topic == core::topic::kRouterDeliveries) {
    const auto delivery = ingest::decode_delivery(record);
    if (!delivery) return;
    line(kept.timestamp, "message", delivery->type + " to " + delivery->receiver,
         delivery->detail.empty() ? delivery->code : delivery->detail,
         {{"state", std::string(core::to_string(delivery->state))},
          {"attempt", std::int64_t{delivery->attempt}}});
  } else if (topic == core::topic::kCommands) {
    const auto decoded = ingest::decode_command(record);
    if (!decoded) return;
    const bool taken_back = !decoded->command;
    line(kept.timestamp, "command", decoded->action + (taken_back ? " withdrawn" : " asked"),
         taken_back ? "" : decoded->command->requested_by);
  } else if (topic == core::topic::kAcks) {
    const auto ack = ingest::decode_ack(record);
    if (!ack) return;
    line(kept.timestamp, "answer", "rank " + std::to_string(ack->rank) + ": " + ack->phase,
         ack->checkpoint_path.empty() ? ack->reason : ack->checkpoint_path, {{"step", ack->step}});
  } else if (topic == core::topic::kRouterControl) {
    auto said = said_line(record);
    if (said) line(kept.timestamp, std::move(said->kind), std::move(said->text), said->detail);
  } else if (topic == core::topic::kIssues || topic == core::topic::kRegistry) {
    note_event(kept);
  }
}

ValueList RunStory::history() const {
  ValueList out = lines_;
  const auto time_of = [](const Value& one) { return core::text_at(one, "time"); };
  std::stable_sort(out.begin(), out.end(),
                   [&](const Value& a, const Value& b) { return time_of(a) < time_of(b); });
  std::reverse(out.begin(), out.end());
  return out;
}

Value RunStory::stop(const std::string& run) const {
  const auto uid = core::parse_run_uid(run);
  const auto found = uid ? view_.stops().find(*uid) : view_.stops().end();
  if (found == view_.stops().end()) return {};
  const core::StopTold& told = found->second.told;
  return ValueMap{{"command_id", told.command_id},
                  {"state", told.state},
                  {"mode", told.mode},
                  {"requested_by", word_or_null(told.requested_by)},
                  {"requested_at", core::to_rfc3339(told.requested_at)},
                  {"rule", word_or_null(told.rule)},
                  {"reason", word_or_null(told.reason)},
                  {"step", integer_or_null(told.step)},
                  {"checkpoint", saved_checkpoint(told)},
                  {"checkpoint_failure", word_or_null(told.checkpoint_failure)},
                  {"exit_code", told.exit_code ? Value(std::int64_t{*told.exit_code}) : Value()},
                  {"ranks", ValueMap{{"asked", std::int64_t{told.answers.asked}},
                                     {"heard", std::int64_t{told.answers.heard}},
                                     {"stopped", std::int64_t{told.answers.stopped}},
                                     {"refused", std::int64_t{told.answers.refused}}}}};
}

}  // namespace tocsin::app
