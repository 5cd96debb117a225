#include "actions/event_json.h"

#include <algorithm>

namespace tocsin::actions {
namespace {

using core::Value;
using core::ValueList;
using core::ValueMap;

Value labels_value(const core::Labels& labels) {
  ValueMap out;
  for (const auto& [name, value] : labels.entries()) out.emplace_back(name, value);
  return out;
}

Value time_value(core::WallTime time) {
  return time == core::WallTime{} ? Value{} : Value{core::to_rfc3339(time)};
}

template <typename T>
Value optional_value(const std::optional<T>& value) {
  return value ? Value{*value} : Value{};
}

Value number_value(const core::NamedNumber& number) {
  return ValueMap{{"name", number.name}, {"value", number.value}};
}

Value annotations(const core::Issue& issue) {
  ValueMap out;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) out.emplace_back(name, value);
  };
  add("summary", issue.summary);
  add("description", issue.description);
  add("recommendation", issue.recommendation);
  add("runbook_url", issue.runbook_url);
  for (const auto& [name, value] : issue.annotations) out.emplace_back(name, value);
  return out;
}

Value evidence(const core::Evidence& evidence) {
  ValueMap out{{"observed", number_value(evidence.observed)}, {"operator", evidence.op}};
  out.emplace_back("threshold", evidence.threshold ? number_value(*evidence.threshold) : Value{});
  if (evidence.tensor) {
    ValueList shape;
    for (const std::int64_t size : evidence.tensor->shape) shape.emplace_back(size);
    out.emplace_back("tensor", ValueMap{{"name", evidence.tensor->name},
                                        {"collection", evidence.tensor->collection},
                                        {"dtype", std::string(to_string(evidence.tensor->dtype))},
                                        {"shape", std::move(shape)}});
  }
  out.emplace_back("window", ValueMap{{"clock", evidence.window.clock},
                                      {"first", evidence.window.first},
                                      {"last", evidence.window.last},
                                      {"points", evidence.window.points},
                                      {"partial", evidence.window.partial}});
  out.emplace_back("occurrences", evidence.occurrences);
  ValueList worst;
  for (const auto& [unit, value] : evidence.affected.worst) {
    worst.emplace_back(ValueMap{{"unit", unit}, {"value", value}});
  }
  out.emplace_back("affected", ValueMap{{"hit", evidence.affected.hit},
                                        {"evaluated", evidence.affected.evaluated},
                                        {"worst", std::move(worst)}});
  out.emplace_back("values", evidence.values);
  return out;
}

Value issue_value(const core::NotifiedIssue& notified) {
  const core::Issue& issue = notified.issue;
  return ValueMap{{"issue_key", notified.issue_key},
                  {"episode", notified.episode},
                  {"event_id", issue.event_id},
                  {"fingerprint", core::fingerprint(issue.labels)},
                  {"status", std::string(to_string(issue.status))},
                  {"rule", issue.rule},
                  {"severity", std::string(to_string(issue.severity))},
                  {"labels", labels_value(issue.labels)},
                  {"annotations", annotations(issue)},
                  {"generator_url", issue.generator_url},
                  {"starts_at", time_value(issue.starts_at)},
                  {"ends_at", issue.ends_at ? time_value(*issue.ends_at) : Value{}},
                  {"resolution", issue.resolution == core::Resolution::none
                                     ? Value{}
                                     : Value{std::string(to_string(issue.resolution))}},
                  {"run", ValueMap{{"uid", to_text(issue.run.uid)},
                                   {"attempt", std::uint64_t{issue.run.attempt}},
                                   {"job", issue.run.job},
                                   {"platform", issue.run.platform}}},
                  {"step", optional_value(issue.step)},
                  {"global_step", optional_value(issue.global_step)},
                  {"mode", issue.mode ? Value{std::string(to_string(*issue.mode))} : Value{}},
                  {"epoch", optional_value(issue.epoch)},
                  {"evidence", evidence(issue.evidence)}};
}

Value counts(const core::Notification& notification) {
  return ValueMap{{"firing", notification.firing_count},
                  {"resolved", notification.resolved_count},
                  {"suppressed", std::uint64_t{notification.suppressed.size()}},
                  {"truncated", notification.truncated}};
}

const char* status(const core::Notification& notification) {
  return notification.firing ? "firing" : "resolved";
}

// What is left when the full message was refused.
Value top_issue(const core::NotifiedIssue& notified) {
  return ValueMap{{"issue_key", notified.issue_key},
                  {"episode", notified.episode},
                  {"status", std::string(to_string(notified.issue.status))},
                  {"rule", notified.issue.rule},
                  {"summary", notified.issue.summary},
                  {"run_uid", to_text(notified.issue.run.uid)}};
}

}  // namespace

TraceContext trace_of(const core::Notification& notification) {
  // They become header lines: nothing but what the recommendation allows gets through.
  const auto fit = [](std::string_view text, std::size_t limit) {
    return text.size() <= limit &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7F; });
  };
  for (const auto& notified : notification.issues) {
    const core::Issue& issue = notified.issue;
    if (issue.traceparent.empty() || !fit(issue.traceparent, 128)) continue;
    return {issue.traceparent, fit(issue.tracestate, 512) ? issue.tracestate : std::string_view()};
  }
  return {};
}

Value native(const core::Notification& notification, const Sender& sender) {
  ValueMap out{{"status", status(notification)},
               {"kind", std::string(to_string(notification.kind))},
               {"reason", notification.reason},
               {"notification_id", notification.notification_id},
               {"receiver", notification.receiver},
               {"group_key", notification.group_key},
               {"group_labels", labels_value(notification.group_labels)},
               {"common_labels", labels_value(notification.common_labels)},
               {"counts", counts(notification)},
               {"decided_at", time_value(notification.decided_at)},
               {"external_url", sender.external_url}};
  ValueList issues;
  if (!notification.minimal) {
    for (const auto& notified : notification.issues) issues.push_back(issue_value(notified));
  } else if (!notification.issues.empty()) {
    issues.push_back(top_issue(notification.issues.front()));
  }
  out.emplace_back("issues", std::move(issues));
  return out;
}

Value alertmanager_v4(const core::Notification& notification, const Sender& sender) {
  ValueList alerts;
  const std::size_t shown = notification.minimal
                                ? std::min<std::size_t>(1, notification.issues.size())
                                : notification.issues.size();
  for (std::size_t i = 0; i < shown; ++i) {
    const core::Issue& issue = notification.issues[i].issue;
    alerts.emplace_back(ValueMap{
        {"status", std::string(to_string(issue.status))},
        {"labels", labels_value(issue.labels)},
        {"annotations", annotations(issue)},
        {"startsAt", core::to_rfc3339(issue.starts_at)},
        // Go's zero time is how that format says "not over yet".
        {"endsAt", issue.ends_at ? core::to_rfc3339(*issue.ends_at) : "0001-01-01T00:00:00Z"},
        {"generatorURL", issue.generator_url.empty() ? sender.external_url : issue.generator_url},
        {"fingerprint", core::fingerprint(issue.labels)}});
  }
  return ValueMap{
      {"version", "4"},
      {"groupKey", notification.group_key},
      {"truncatedAlerts", notification.truncated + (notification.issues.size() - shown)},
      {"status", status(notification)},
      {"receiver", notification.receiver},
      {"groupLabels", labels_value(notification.group_labels)},
      {"commonLabels", labels_value(notification.common_labels)},
      {"commonAnnotations", ValueMap{}},
      {"externalURL", sender.external_url},
      {"alerts", std::move(alerts)}};
}

Value cloud_event(const core::Notification& notification, const Sender& sender) {
  ValueMap out{{"specversion", "1.0"},
               {"type", "dev.tocsin.notification.v1"},
               {"source", "/" + sender.cluster + "/router"},
               {"id", notification.notification_id},
               {"time", core::to_rfc3339(notification.decided_at)},
               {"datacontenttype", "application/json"}};
  if (!notification.issues.empty()) {
    const core::NotifiedIssue& top = notification.issues.front();
    out.emplace_back("subject", to_text(top.issue.run.uid));
    out.emplace_back("correlationid", top.issue_key + "/" + std::to_string(top.episode));
    out.emplace_back("causationid", top.issue.event_id);
    const auto traced = trace_of(notification);
    if (!traced.parent.empty()) out.emplace_back("traceparent", std::string(traced.parent));
    if (!traced.state.empty()) out.emplace_back("tracestate", std::string(traced.state));
  }
  out.emplace_back("data", native(notification, sender));
  return out;
}

}  // namespace tocsin::actions
