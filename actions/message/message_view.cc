#include "actions/message/message_view.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "actions/message/answer_links.h"
#include "actions/message/console_lines.h"
#include "actions/message/episode_words.h"
#include "actions/message/headline.h"
#include "actions/message/message_parts.h"
#include "actions/message/tone.h"
#include "core/visible_text.h"

namespace tocsin::actions {
namespace {

using core::Issue;
using core::IssueStatus;
using core::Notification;
using core::Value;
using core::ValueList;
using core::ValueMap;

constexpr std::size_t kViewName = 200;
constexpr std::size_t kViewText = 2000;

std::string colour(std::string_view tone) { return std::string(tone_named(tone).colour); }

std::string tone(const Issue& issue) {
  return issue.status == IssueStatus::resolved ? "resolved"
                                               : std::string(to_string(issue.severity));
}

// Links only with schemes that open a page, and only whole ones.
bool is_link(std::string_view value) {
  return (value.starts_with("https://") || value.starts_with("http://")) && !value.ends_with("…");
}

Value label_map(const core::Labels& labels) {
  ValueMap out;
  for (const auto& [name, value] : labels.entries())
    out.emplace_back(name, core::visible(value, kViewText));
  return out;
}

Value row_list(const Rows& rows) {
  ValueList out;
  for (const auto& [name, value] : rows) {
    out.emplace_back(
        ValueMap{{"name", name},
                 {"padded", name + std::string(name.size() < 12 ? 12 - name.size() : 1, ' ')},
                 {"value", value},
                 {"link", is_link(value)}});
  }
  return out;
}

Value part_view(const Part& part) {
  return ValueMap{{"heading", part.heading}, {"rows", row_list(part.rows)}};
}

/// All that one issue alone has to say.
Rows issue_rows(const Issue& issue) {
  Rows out;
  const auto add = [&](const char* name, std::string value) {
    if (!value.empty()) out.emplace_back(name, core::visible(value, kViewText));
  };
  add("Observed", seen(issue));
  add("Where", where(issue));
  add("Affected", affected(issue));
  add("At", step_text(issue));
  add("Caused by", causes(issue));
  if (issue.starts_at != core::WallTime{}) add("Since", when(issue.starts_at));
  if (issue.status == IssueStatus::resolved && issue.ends_at) {
    add("Until", when(*issue.ends_at) + " (" + resolution_words(issue) + ")");
  }
  for (auto& [name, value] : run_rows(issue)) {
    if (name == "Job" || name == "Run") out.emplace_back(name, value);
  }
  if (issue.status == IssueStatus::firing) add("What to do", issue.recommendation);
  add("Runbook", issue.runbook_url);
  add("Report", std::string(annotation(issue, "report")));
  return out;
}

Value issue_view(const Notification& notification, const core::NotifiedIssue& notified, bool more) {
  const Issue& issue = notified.issue;
  ValueMap out{{"tag", tag(issue)},
               {"colour", colour(tone(issue))},
               {"rule", core::visible(issue.rule, kViewName)},
               {"severity", std::string(to_string(issue.severity))},
               {"status", std::string(to_string(issue.status))},
               {"title", title(issue)},
               {"summary", first_line(issue)},
               {"outcome", outcome_words(notification, issue)},
               {"ending", issue.ending ? core::visible(issue.ending->summary, kViewText) : ""},
               {"job", core::visible(issue.run.job, kViewName)},
               {"run_uid", run_text(issue.run)},
               {"attempt", std::uint64_t{issue.run.attempt}},
               {"issue_key", notified.issue_key},
               {"event_id", core::visible(issue.event_id, kViewName)},
               {"since", issue.starts_at == core::WallTime{} ? "" : when(issue.starts_at)},
               {"until", issue.ends_at ? when(*issue.ends_at) : ""},
               {"acknowledged",
                notified.acknowledged ? core::visible(notified.acknowledged->by, kViewName) : ""},
               {"more", more}};
  if (issue.step) out.emplace_back("step", *issue.step);
  if (issue.ending && issue.ending->step) out.emplace_back("end_step", *issue.ending->step);
  if (notification.minimal) return out;
  out.emplace_back("description", core::visible(issue.description, 2 * kViewText));
  if (const auto lines = console_lines(issue); !lines.empty()) {
    out.emplace_back("console", joined(lines));
  }
  out.emplace_back("recommendation", core::visible(issue.recommendation, kViewText));
  out.emplace_back("runbook_url", core::visible(issue.runbook_url, kViewText));
  out.emplace_back("labels", label_map(issue.labels));
  out.emplace_back("rows", row_list(issue_rows(issue)));
  return out;
}

ValueList issue_list(const Notification& notification) {
  const std::size_t shown = notification.minimal
                                ? std::min<std::size_t>(1, notification.issues.size())
                                : notification.issues.size();
  const core::NotifiedIssue* lead = lead_of(notification);
  ValueList out;
  for (std::size_t i = 0; i < shown; ++i) {
    // The one that is left of a short form is the one that the headline names.
    const auto& one = notification.minimal ? *lead : notification.issues[i];
    out.push_back(issue_view(notification, one, /*more=*/i + 1 < shown));
  }
  return out;
}

Value lead_view(const MessageParts& parts) {
  ValueMap out{{"tag", parts.tag},
               {"tone", parts.tone},
               {"colour", colour(parts.tone)},
               {"summary", parts.summary}};
  if (!parts.description.empty()) out.emplace_back("description", parts.description);
  if (!parts.console.empty()) out.emplace_back("console", joined(parts.console));
  out.emplace_back("rows", row_list(parts.found));
  return out;
}

Value follower_view(const Follower& one) {
  return ValueMap{{"tag", one.tag}, {"title", one.title}, {"rest", one.rest}};
}

void add_parts(const MessageParts& parts, ValueMap& out) {
  ValueList sections;  // what became of it, and where
  for (const Part* part : {&parts.ended, &parts.did}) {
    if (!part->rows.empty()) sections.push_back(part_view(*part));
  }
  out.emplace_back("sections", std::move(sections));
  ValueList runs;
  for (const Part& run : parts.runs) runs.push_back(part_view(run));
  out.emplace_back("runs", std::move(runs));
  if (!parts.followers.empty()) {
    ValueList lines;
    for (const Follower& one : parts.followers) lines.push_back(follower_view(one));
    out.emplace_back("followed",
                     ValueMap{{"heading", parts.followed}, {"followers", std::move(lines)}});
  }
  if (!parts.advice.empty()) {
    ValueList lines;
    for (const std::string& text : parts.advice) lines.emplace_back(ValueMap{{"value", text}});
    out.emplace_back("advice", ValueMap{{"heading", "What to do"}, {"lines", std::move(lines)}});
  }
  if (!parts.links.empty()) out.emplace_back("links", part_view({"Links", parts.links}));
  ValueList commands;
  for (const NextCommand& one : parts.commands)
    commands.emplace_back(ValueMap{{"does", one.does}, {"line", one.line}});
  out.emplace_back("commands", std::move(commands));
}

constexpr std::array<std::string_view, 58> kViewNames{"why",
                                                      "acknowledged",
                                                      "headline",
                                                      "outcome",
                                                      "status",
                                                      "firing",
                                                      "resolved",
                                                      "receiver",
                                                      "reason",
                                                      "kind",
                                                      "group_labels",
                                                      "hidden",
                                                      "details",
                                                      "notification_id",
                                                      "home",
                                                      "footer",
                                                      "issues",
                                                      "tag",
                                                      "colour",
                                                      "rule",
                                                      "severity",
                                                      "title",
                                                      "summary",
                                                      "ending",
                                                      "job",
                                                      "run_uid",
                                                      "attempt",
                                                      "issue_key",
                                                      "event_id",
                                                      "since",
                                                      "until",
                                                      "more",
                                                      "step",
                                                      "end_step",
                                                      "recommendation",
                                                      "runbook_url",
                                                      "labels",
                                                      "rows",
                                                      "name",
                                                      "value",
                                                      "link",
                                                      "description",
                                                      "console",
                                                      "lead",
                                                      "tone",
                                                      "sections",
                                                      "heading",
                                                      "runs",
                                                      "followed",
                                                      "followers",
                                                      "rest",
                                                      "advice",
                                                      "lines",
                                                      "links",
                                                      "commands",
                                                      "answers",
                                                      "does",
                                                      "line"};

}  // namespace

core::Value message_view(const Notification& notification, const Sender& sender) {
  const MessageParts parts = message_parts(notification, sender);
  ValueMap out{{"headline", parts.headline},
               {"outcome", parts.outcome},
               {"status", notification.firing ? "firing" : "resolved"},
               {"firing", notification.firing_count},
               {"resolved", notification.resolved_count},
               {"receiver", core::visible(notification.receiver, kViewName)},
               {"reason", core::visible(notification.reason, kViewName)},
               {"why", core::visible(notification.why, kViewText)},
               {"kind", std::string(to_string(notification.kind))},
               {"notification_id", notification.notification_id},
               {"group_labels", label_map(notification.group_labels)},
               {"hidden", parts.hidden},
               {"details", !notification.minimal},
               {"footer", parts.footer},
               {"issues", issue_list(notification)}};
  if (lead_of(notification) != nullptr) out.emplace_back("lead", lead_view(parts));
  add_parts(parts, out);
  ValueList answers;
  for (const auto& [name, url] : answer_links(notification, sender))
    answers.emplace_back(ValueMap{{"name", name}, {"value", url}});
  if (!answers.empty()) out.emplace_back("answers", ValueMap{{"lines", std::move(answers)}});
  if (!sender.external_url.empty()) {
    out.emplace_back("home", ValueMap{{"value", core::visible(sender.external_url, kViewText)},
                                      {"link", is_link(sender.external_url)}});
  }
  return out;
}

bool in_message_view(std::string_view name) {
  // Which labels there are is not known before there is an issue.
  for (const std::string_view labels : {"labels.", "group_labels.", "issues.labels."}) {
    if (name.starts_with(labels)) return true;
  }
  for (const std::string_view whole : {"home.", "lead."}) {
    if (name.starts_with(whole)) name.remove_prefix(whole.size());
  }
  if (name == "padded") return true;
  return std::find(kViewNames.begin(), kViewNames.end(), name) != kViewNames.end();
}

}  // namespace tocsin::actions
