#include "app/api/api_rows.h"

#include "app/view/silence_records.h"
#include "core/json.h"

namespace tocsin::app {
namespace {

using core::Value;
using core::ValueList;
using core::ValueMap;

Value time_or_null(core::WallTime time) {
  return time == core::WallTime{} ? Value() : Value(core::to_rfc3339(time));
}
Value time_or_null(const std::optional<core::WallTime>& time) {
  return time_or_null(time.value_or(core::WallTime{}));
}
Value number_or_null(const std::optional<std::int64_t>& number) {
  return number ? Value(*number) : Value();
}
Value text_or_null(std::string_view text) {
  return text.empty() ? Value() : Value(std::string(text));
}

Value run_value(const core::RunUid& uid, std::uint32_t attempt) {
  if (uid.nil()) return {};
  return ValueMap{{"uid", core::to_text(uid)}, {"attempt", std::int64_t{attempt}}};
}

Value labels_map(const core::Labels& labels) {
  ValueMap out;
  for (const auto& [name, value] : labels.entries()) out.emplace_back(name, value);
  return out;
}

Value causes(const core::Issue& issue) {
  ValueList out;
  for (const core::Cause& cause : issue.caused_by) {
    out.push_back(ValueMap{{"key", cause.issue_key},
                           {"rule", cause.rule},
                           {"event_id", cause.event_id},
                           {"step", number_or_null(cause.step)}});
  }
  return out;
}

Value ending_value(const core::Issue& issue) {
  if (!issue.ending) return {};
  return ValueMap{{"summary", issue.ending->summary}, {"step", number_or_null(issue.ending->step)}};
}

}  // namespace

Value number_or_null(const std::optional<double>& number) {
  return number ? Value(*number) : Value();
}

IssueState state_of(const TopicView& view, const core::Issue& issue, core::Duration resolve_timeout,
                    core::WallTime now) {
  if (issue.status != core::IssueStatus::firing) return {issue.status, issue.resolution};
  if (const auto how = view.outlived(issue); how != core::Resolution::none)
    return {core::IssueStatus::resolved, how};
  const bool expired =
      !issue.explicit_expiry && issue.ends_at.value_or(issue.time + resolve_timeout) <= now;
  if (expired) return {core::IssueStatus::resolved, core::Resolution::expired};
  return {};
}

Value issue_value(const IssueRow& row) {
  const core::Issue& issue = row.seen.newest;
  ValueMap out{
      {"key", row.key},
      {"episode", row.episode ? Value(*row.episode) : Value()},
      {"event_id", issue.event_id},
      {"rule", issue.rule},
      {"severity", std::string(core::to_string(issue.severity))},
      {"status", std::string(core::to_string(row.state.status))},
      {"resolution", row.state.resolution == core::Resolution::none
                         ? Value()
                         : Value(std::string(core::to_string(row.state.resolution)))},
      {"summary", issue.summary},
      {"description", text_or_null(issue.description)},
      {"recommendation", text_or_null(issue.recommendation)},
      {"runbook_url", text_or_null(issue.runbook_url)},
      {"labels", labels_map(issue.labels)},
      {"run", run_value(issue.run.uid, issue.run.attempt)},
      {"job", text_or_null(issue.run.job)},
      {"step", number_or_null(issue.step)},
      {"mode", issue.mode ? Value(std::string(core::to_string(*issue.mode))) : Value()},
      {"tensor", issue.evidence.tensor ? text_or_null(issue.evidence.tensor->name) : Value()},
      {"worker", text_or_null(issue.labels.get("worker"))},
      {"starts_at", time_or_null(row.seen.since)},
      {"ends_at",
       row.state.status == core::IssueStatus::firing ? Value() : time_or_null(issue.ends_at)},
      {"updated_at", time_or_null(issue.time)},
      {"ending", ending_value(issue)},
      {"caused_by", causes(issue)}};
  add_held_back(out, row.held);
  out.emplace_back("reports", row.seen.reports);
  return out;
}

Value delivery_value(const core::Delivery& delivery, core::WallTime at, const std::string& id) {
  ValueList issues;
  for (const core::IssueRef& issue : delivery.issues) {
    issues.push_back(ValueMap{
        {"key", issue.issue_key}, {"episode", issue.episode}, {"event_id", issue.event_id}});
  }
  const auto milliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(delivery.latency).count();
  return ValueMap{{"id", id},
                  {"time", core::to_rfc3339(at)},
                  {"notification_id", delivery.notification_id},
                  {"integration", delivery.integration},
                  {"type", delivery.type},
                  {"receiver", delivery.receiver},
                  {"group_key", delivery.group_key},
                  {"reason", delivery.reason},
                  {"kind", std::string(core::to_string(delivery.kind))},
                  {"attempt", std::int64_t{delivery.attempt}},
                  {"state", std::string(core::to_string(delivery.state))},
                  {"outcome", std::string(core::to_string(delivery.outcome))},
                  {"code", text_or_null(delivery.code)},
                  {"detail", text_or_null(delivery.detail)},
                  {"latency_ms", std::int64_t{milliseconds}},
                  {"next_attempt_at", time_or_null(delivery.next_attempt_at)},
                  {"issues", std::move(issues)}};
}

Value command_value(const CommandHistory::Entry& entry) {
  const core::Command& command = entry.command;
  ValueList answers;
  for (const auto& [rank, answer] : entry.answers) {
    answers.push_back(ValueMap{
        {"rank", std::int64_t{rank}},
        {"worker", text_or_null(answer.worker)},
        {"phase", answer.phase},
        {"time", time_or_null(answer.time)},
        {"step", answer.step},
        {"effective_step", answer.effective_step ? Value(*answer.effective_step) : Value()},
        {"reason", text_or_null(answer.reason)}});
  }
  return ValueMap{{"command_id", command.command_id},
                  {"action", command.action},
                  {"run", run_value(command.run, command.attempt)},
                  {"node", text_or_null(entry.node)},
                  {"issued_at", core::to_rfc3339(command.issued_at)},
                  {"expires_at", time_or_null(command.expires_at)},
                  {"requested_by", text_or_null(command.requested_by)},
                  {"dry_run", command.dry_run},
                  {"withdrawn", entry.withdrawn},
                  {"phase", text_or_null(entry.newest_phase)},
                  {"reason", ValueMap{{"rule", text_or_null(command.reason.rule)},
                                      {"issue", text_or_null(command.reason.issue_key)},
                                      {"episode", command.reason.episode},
                                      {"summary", text_or_null(command.reason.summary)}}},
                  {"answers", std::move(answers)}};
}

Value ack_value(const core::Ack& ack) {
  return ValueMap{{"command_id", ack.command_id},
                  {"action", ack.action},
                  {"run", run_value(ack.run, ack.attempt)},
                  {"rank", std::int64_t{ack.rank}},
                  {"worker", text_or_null(ack.worker)},
                  {"node", text_or_null(ack.node)},
                  {"phase", ack.phase},
                  {"time", time_or_null(ack.time)},
                  {"step", ack.step},
                  {"reason", text_or_null(ack.reason)}};
}

Value silence_row(const routing::Silence& silence, core::WallTime now) {
  const auto sets = matcher_sets(silence);
  ValueMap annotations;
  for (const auto& [name, text] : silence.annotations) annotations.emplace_back(name, text);
  // As its record has it.
  const Value fields = silence_fields(silence);
  const Value* recurrence = core::find(fields, "recurrence");
  const auto span_or_null = [](core::Duration span) {
    return span == core::Duration{} ? Value() : Value(core::to_text(span));
  };
  return ValueMap{{"id", silence.id},
                  {"state", silence_state(silence, now)},
                  {"in_force", in_force(silence, now)},
                  {"matchers", matchers_text(silence)},
                  {"matcher_sets", ValueList(sets.begin(), sets.end())},
                  {"starts_at", core::to_rfc3339(silence.starts_at)},
                  {"ends_at", core::to_rfc3339(silence.ends_at)},
                  {"recurrence", recurrence == nullptr ? Value() : *recurrence},
                  {"created_at", core::to_rfc3339(silence.created_at)},
                  {"updated_at", time_or_null(silence.updated_at)},
                  {"created_by", silence.created_by},
                  {"comment", silence.comment},
                  {"annotations", std::move(annotations)},
                  {"actions", silence.actions.empty() ? "all" : silence.actions},
                  {"until_resolved", silence.until_resolved},
                  {"quiet_for", span_or_null(silence.quiet_for)},
                  {"auto_expire_unmatched", span_or_null(silence.auto_expire_unmatched)},
                  {"announce_on_unmute",
                   silence.announce_on_unmute.empty() ? "never" : silence.announce_on_unmute},
                  {"replaces", text_or_null(silence.replaces)},
                  {"ended_by", text_or_null(silence.ended_by)},
                  {"version", static_cast<std::int64_t>(silence.version)}};
}

}  // namespace tocsin::app
