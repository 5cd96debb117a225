#include "actions/message_view.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "actions/lane.h"
#include "actions/redact.h"

namespace tocsin::actions {
namespace {

using core::Issue;
using core::IssueStatus;
using core::Notification;
using core::Value;
using core::ValueList;
using core::ValueMap;

std::string number(double value) {
  std::string text = core::to_json(core::Value{value});
  if (text.size() > 1 && text.front() == '"') text = text.substr(1, text.size() - 2);  // "NaN"
  return text;
}

// "2026-01-02 03:04:05 UTC"
std::string when(core::WallTime time) {
  std::string text = core::to_rfc3339(time).substr(0, 19);
  if (text.size() > 10) text[10] = ' ';
  return text + " UTC";
}

std::string common(const Notification& notification, std::string (*of)(const Issue&),
                   std::string_view several) {
  std::string out;
  for (const auto& notified : notification.issues) {
    std::string one = of(notified.issue);
    if (!out.empty() && one != out) return std::string(several);
    out = std::move(one);
  }
  return out;
}

std::string where(const Issue& issue) {
  std::string out;
  const auto add = [&](const std::string& part) {
    if (!part.empty()) out += (out.empty() ? "" : ", ") + part;
  };
  add(issue.evidence.tensor ? issue.evidence.tensor->name : issue.labels.get("tensor"));
  add(issue.labels.get("metric"));
  add(issue.labels.get("worker"));
  add(issue.labels.get("node"));
  add(issue.labels.get("device"));
  return out;
}

std::string step_text(const Issue& issue) {
  if (!issue.step) return {};
  std::string out = "step " + std::to_string(*issue.step);
  if (issue.mode && *issue.mode != core::Mode::global)
    out += " (" + std::string(to_string(*issue.mode)) + ")";
  if (issue.epoch) out += ", epoch " + std::to_string(*issue.epoch);
  return out;
}

std::string seen(const Issue& issue) {
  const core::Evidence& evidence = issue.evidence;
  if (evidence.observed.name.empty()) return {};
  std::string out = evidence.observed.name + " = " + number(evidence.observed.value);
  if (evidence.threshold) {
    out += "; " + evidence.threshold->name + ": " + (evidence.op.empty() ? "" : evidence.op + " ") +
           number(evidence.threshold->value);
  }
  if (evidence.occurrences > 1) out += "; " + std::to_string(evidence.occurrences) + " times";
  return out;
}

std::string affected(const Issue& issue) {
  const core::Affected& all = issue.evidence.affected;
  if (all.hit < 2) return {};
  return std::to_string(all.hit) + " of " + std::to_string(all.evaluated);
}

/// "exploding_tensor (tensor=loss) at train step 411; …": what came before it in its run.
std::string causes(const Issue& issue) {
  std::string out;
  for (const core::Cause& cause : issue.caused_by) {
    if (!out.empty()) out += "; ";
    out += cause.rule;
    if (!cause.unit.empty()) out += " (" + cause.unit + ")";
    if (!cause.step) continue;
    out += " at ";
    if (cause.mode) out += std::string(core::to_string(*cause.mode)) + " ";
    out += "step " + std::to_string(*cause.step);
  }
  return out;
}

using Rows = std::vector<std::pair<std::string, std::string>>;

Rows rows(const Issue& issue) {
  Rows out;
  const auto add = [&](const char* name, std::string value) {
    if (!value.empty()) out.emplace_back(name, printable(value, 2000));
  };
  add("Seen", seen(issue));
  add("Where", where(issue));
  add("Affected", affected(issue));
  add("At", step_text(issue));
  add("Came after", causes(issue));
  if (issue.starts_at != core::WallTime{}) add("Since", when(issue.starts_at));
  if (issue.status == IssueStatus::resolved && issue.ends_at) {
    add("Until",
        when(*issue.ends_at) + (issue.resolution == core::Resolution::none
                                    ? ""
                                    : " (" + std::string(to_string(issue.resolution)) + ")"));
  }
  add("Run", to_text(issue.run.uid) + ", attempt " + std::to_string(issue.run.attempt) +
                 (issue.run.job.empty() ? "" : ", job " + issue.run.job));
  if (issue.status == IssueStatus::firing) add("What to do", issue.recommendation);
  add("Runbook", issue.runbook_url);
  for (const auto& [name, text] : issue.annotations) {
    if (name == "report") add("Report", text);
  }
  return out;
}

std::string first_line(const Issue& issue) {
  if (!issue.summary.empty()) return printable(issue.summary, 2000);
  const std::string sentence = evidence_sentence(issue);
  return sentence.empty() ? issue.rule : sentence;
}

std::string tag(const Issue& issue) {
  if (issue.status == IssueStatus::resolved) return "RESOLVED";
  std::string out(to_string(issue.severity));
  for (char& c : out) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return out;
}

std::string more(const Notification& notification, std::size_t shown) {
  const std::uint64_t hidden = notification.truncated + (notification.issues.size() - shown);
  return hidden == 0 ? "" : std::to_string(hidden) + " more are not shown here.";
}

std::string footer(const Notification& notification) {
  return "Sent by Tocsin to receiver " + notification.receiver + " (" + notification.reason +
         "), notification " + notification.notification_id;
}

const char* colour(const Issue& issue) {
  static constexpr std::array<const char*, 4> kColours{"#1f6feb", "#9a6700", "#cf222e", "#82071e"};
  return issue.status == IssueStatus::resolved ? "#1a7f37"
                                               : kColours[static_cast<std::size_t>(issue.severity)];
}

// Links only with schemes that open a page.
bool is_link(std::string_view value) {
  return value.starts_with("https://") || value.starts_with("http://");
}

Value label_map(const core::Labels& labels) {
  ValueMap out;
  for (const auto& [name, value] : labels.entries()) out.emplace_back(name, printable(value, 2000));
  return out;
}

Value row_list(const Issue& issue) {
  ValueList out;
  for (const auto& [name, value] : rows(issue)) {
    out.emplace_back(
        ValueMap{{"name", name},
                 {"padded", name + std::string(name.size() < 12 ? 12 - name.size() : 1, ' ')},
                 {"value", value},
                 {"link", is_link(value)}});
  }
  return out;
}

Value issue_view(const core::NotifiedIssue& notified, bool details, bool more) {
  const Issue& issue = notified.issue;
  ValueMap out{{"tag", tag(issue)},
               {"colour", colour(issue)},
               {"rule", printable(issue.rule, 200)},
               {"severity", std::string(to_string(issue.severity))},
               {"status", std::string(to_string(issue.status))},
               {"summary", first_line(issue)},
               {"job", printable(issue.run.job, 200)},
               {"run_uid", to_text(issue.run.uid)},
               {"attempt", std::uint64_t{issue.run.attempt}},
               {"issue_key", notified.issue_key},
               {"since", issue.starts_at == core::WallTime{} ? "" : when(issue.starts_at)},
               {"more", more}};
  if (!details) return out;
  out.emplace_back("description", printable(issue.description, 4000));
  out.emplace_back("recommendation", printable(issue.recommendation, 2000));
  out.emplace_back("runbook_url", printable(issue.runbook_url, 2000));
  if (issue.step) out.emplace_back("step", *issue.step);
  out.emplace_back("labels", label_map(issue.labels));
  out.emplace_back("rows", row_list(issue));
  return out;
}

constexpr std::array<std::string_view, 34> kNames{"headline",    "status",       "firing",
                                                  "resolved",    "receiver",     "reason",
                                                  "kind",        "group_labels", "notification_id",
                                                  "hidden",      "details",      "home",
                                                  "footer",      "issues",       "tag",
                                                  "colour",      "rule",         "severity",
                                                  "summary",     "job",          "run_uid",
                                                  "attempt",     "issue_key",    "since",
                                                  "more",        "description",  "recommendation",
                                                  "runbook_url", "step",         "labels",
                                                  "rows",        "name",         "value",
                                                  "link"};

}  // namespace

std::string headline(const Notification& notification) {
  std::string out = "[RESOLVED]";
  if (notification.firing) {
    out = "[FIRING:" + std::to_string(std::max<std::uint64_t>(notification.firing_count, 1)) + " " +
          std::string(to_string(core::worst_of(notification))) + "]";
  }
  const std::string rule = common(
      notification, [](const Issue& issue) { return issue.rule; }, "several rules");
  const std::string job = common(
      notification, [](const Issue& issue) { return issue.run.job; }, "several jobs");
  if (notification.reason == "digest") out += " digest:";
  if (!rule.empty()) out += " " + rule;
  if (!job.empty()) out += " " + job;
  return printable(out, 200);
}

std::string evidence_sentence(const Issue& issue) {
  std::string out;
  const core::Evidence& evidence = issue.evidence;
  if (!evidence.observed.name.empty()) {
    out = evidence.observed.name + " is " + number(evidence.observed.value);
    if (evidence.threshold) {
      out += ", " + evidence.threshold->name + " " +
             (evidence.op.empty() ? "" : evidence.op + " ") + number(evidence.threshold->value);
    }
  }
  if (const std::string at = step_text(issue); !at.empty())
    out += (out.empty() ? "at " : ", at ") + at;
  if (const std::string place = where(issue); !place.empty()) out += " in " + place;
  return printable(out, 1000);
}

core::Value message_view(const Notification& notification, const Sender& sender) {
  const std::size_t shown = notification.minimal
                                ? std::min<std::size_t>(1, notification.issues.size())
                                : notification.issues.size();
  ValueList issues;
  for (std::size_t i = 0; i < shown; ++i) {
    issues.push_back(
        issue_view(notification.issues[i], !notification.minimal, /*more=*/i + 1 < shown));
  }
  ValueMap out{{"headline", headline(notification)},
               {"status", notification.firing ? "firing" : "resolved"},
               {"firing", notification.firing_count},
               {"resolved", notification.resolved_count},
               {"receiver", printable(notification.receiver, 200)},
               {"reason", printable(notification.reason, 200)},
               {"kind", std::string(to_string(notification.kind))},
               {"notification_id", notification.notification_id},
               {"group_labels", label_map(notification.group_labels)},
               {"hidden", more(notification, shown)},
               {"details", !notification.minimal},
               {"footer", printable(footer(notification), 500)},
               {"issues", std::move(issues)}};
  if (!sender.external_url.empty()) {
    out.emplace_back("home", ValueMap{{"value", printable(sender.external_url, 2000)},
                                      {"link", is_link(sender.external_url)}});
  }
  return out;
}

bool in_message_view(std::string_view name) {
  // Which labels there are is not known before there is an issue.
  for (const std::string_view labels : {"labels.", "group_labels.", "issues.labels."}) {
    if (name.starts_with(labels)) return true;
  }
  if (name == "home.value" || name == "home.link" || name == "padded") return true;
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

}  // namespace tocsin::actions
