#include "actions/message/message_parts.h"

#include <algorithm>
#include <utility>

#include "actions/message/console_lines.h"
#include "actions/message/episode_words.h"
#include "actions/message/headline.h"
#include "core/replay.h"
#include "core/visible_text.h"

namespace tocsin::actions {
namespace {

using core::Issue;
using core::IssueStatus;
using core::Notification;

constexpr std::size_t kMaxSentence = 1000;
constexpr std::size_t kMaxDescription = 2000;
constexpr std::size_t kMaxAdvice = 600;
constexpr std::size_t kMaxAdvices = 8;
constexpr std::size_t kMaxFollowers = 30;
constexpr std::size_t kMaxPartRuns = 3;
constexpr std::size_t kShort = 300;  // of a sentence in the short form

void add_part_row(Rows& rows, const char* name, std::string_view value, std::size_t limit = 500) {
  if (!value.empty()) rows.emplace_back(name, core::visible(value, limit));
}

/// "ada@node-7, 2026-11-22 14:03 UTC: looking at it".
std::string ack_words(const core::NotifiedIssue& notified) {
  if (!notified.acknowledged) return {};
  const core::AckTold& ack = *notified.acknowledged;
  std::string out = "by " + ack.by + ", " + when(ack.at);
  if (!ack.note.empty()) out += ": " + ack.note;
  if (ack.until) out += " (until " + when(*ack.until) + ")";
  return out;
}

Rows found_rows(const Notification& notification, const core::NotifiedIssue& notified) {
  const Issue& issue = notified.issue;
  Rows out;
  add_part_row(out, "Why now", notification.why);
  add_part_row(out, "Acknowledged", ack_words(notified));
  add_part_row(out, "Observed", seen(issue));
  add_part_row(out, "Where", where(issue));
  add_part_row(out, "Affected", affected(issue));
  add_part_row(out, "At", step_text(issue));
  add_part_row(out, "Caused by", causes(issue));
  if (issue.starts_at != core::WallTime{}) add_part_row(out, "Since", when(issue.starts_at));
  add_part_row(out, "Rule", issue.rule);
  return out;
}

Part ended_part(const Notification& notification, const Issue& issue) {
  Part out{told_as_over(notification, issue) ? "How it ended" : "What happened since", {}};
  if (issue.status == IssueStatus::firing) return out;
  // Of a job that ended before anybody was told, the rows of its run say it.
  const core::RunTold* told = run_of(notification, issue);
  if (!told_as_over(notification, issue) && told != nullptr && !told->outcome.empty()) return out;
  std::string line = resolution_words(issue);
  if (issue.ending && issue.ending->step) line += " at step " + std::to_string(*issue.ending->step);
  if (issue.ends_at) {
    line += ", " + when(*issue.ends_at);
    const bool known = issue.starts_at != core::WallTime{} && *issue.ends_at > issue.starts_at;
    const std::string length = known ? lasted(*issue.ends_at - issue.starts_at) : "";
    if (!length.empty()) line += ", after " + length;
  }
  add_part_row(out.rows, "Ended", line);
  if (issue.ending) add_part_row(out.rows, "Reason", issue.ending->summary);
  return out;
}

/// RESOLVED, or the severity; of one whose job ended before anybody was told, the severity.
std::string told_tag(const Notification& notification, const Issue& issue) {
  Issue told;
  told.severity = issue.severity;
  if (told_as_over(notification, issue)) told.status = IssueStatus::resolved;
  return tag(told);
}

Follower follower(const Notification& notification, const core::NotifiedIssue& notified) {
  const Issue& issue = notified.issue;
  const bool over = told_as_over(notification, issue);
  Follower out{told_tag(notification, issue), over ? past_title(issue) : title(issue), {}};
  const auto more = [&](const std::string& text) {
    if (!text.empty()) out.rest += (out.rest.empty() ? "" : ", ") + text;
  };
  if (issue.step) more("step " + std::to_string(*issue.step));
  more(core::visible(issue.labels.get("worker"), 60));
  more(core::visible(issue.rule, 60));
  if (notified.acknowledged) {
    more("acknowledged by " + core::visible(notified.acknowledged->by, 60));
  }
  return out;
}

bool same_run(const Issue& a, const Issue& b) { return a.run.uid == b.run.uid; }

/// "1 issue", "9 more issues".
std::string issue_count(std::uint64_t count, const char* which) {
  return std::to_string(count) + " " + which + (count == 1 ? "issue" : "issues");
}

/// "9 issues followed" where all of them are of the first sign's run and began no earlier.
std::string followers_heading(const Notification& notification, const core::NotifiedIssue& lead) {
  const std::uint64_t count = notification.issues.size() - 1 + notification.truncated;
  if (count == 0) return {};
  const bool later =
      std::all_of(notification.issues.begin(), notification.issues.end(), [&](const auto& one) {
        return same_run(one.issue, lead.issue) && one.issue.starts_at >= lead.issue.starts_at;
      });
  if (later) return issue_count(count, "") + " followed";
  return issue_count(count, "more ");
}

void list_followers(const Notification& notification, const core::NotifiedIssue& lead,
                    MessageParts& out) {
  out.followed = followers_heading(notification, lead);
  std::size_t shown = 1;
  for (const auto& notified : notification.issues) {
    if (&notified == &lead) continue;
    if (out.followers.size() == kMaxFollowers) break;
    out.followers.push_back(follower(notification, notified));
    ++shown;
  }
  out.hidden = not_shown(notification, shown);
}

/// What has recovered needs none.
void add_advice(const Issue& issue, std::vector<std::string>& out) {
  const bool well =
      issue.status == IssueStatus::resolved && issue.resolution != core::Resolution::job_ended;
  if (well || issue.recommendation.empty() || out.size() == kMaxAdvices) return;
  std::string text = core::visible(issue.recommendation, kMaxAdvice);
  if (std::find(out.begin(), out.end(), text) == out.end()) out.push_back(std::move(text));
}

/// Of the runs that the issues name; the lead's first.
std::vector<Part> run_parts(const Notification& notification, const Issue& lead) {
  std::vector<Part> out;
  std::vector<const core::RunTold*> listed;
  std::size_t left_out = 0;
  const auto list = [&](const Issue& issue) {
    const core::RunTold* told = run_of(notification, issue);
    if (told == nullptr || std::find(listed.begin(), listed.end(), told) != listed.end()) return;
    listed.push_back(told);
    if (out.size() == kMaxPartRuns) {
      ++left_out;
      return;
    }
    out.push_back({"Run", run_rows(*told)});
  };
  list(lead);
  for (const auto& notified : notification.issues) list(notified.issue);
  if (out.empty()) out.push_back({"Run", run_rows(lead)});
  if (left_out > 0)
    add_part_row(out.back().rows, "More", "… " + std::to_string(left_out) + " more runs");
  std::erase_if(out, [](const Part& part) { return part.rows.empty(); });
  return out;
}

// The producer's own page of the issue; else ours, where a message may name it.
std::string issue_page(const core::NotifiedIssue& lead, const Sender& sender) {
  if (!lead.issue.generator_url.empty() || sender.external_url.empty())
    return lead.issue.generator_url;
  return sender.external_url + "/issues/" + lead.issue_key + "/" + std::to_string(lead.episode);
}

Rows link_rows(const Notification& notification, const core::NotifiedIssue& lead,
               const Sender& sender) {
  Rows out;
  add_part_row(out, "Issue", lead.issue.event_id, 200);
  add_part_row(out, "Runbook", lead.issue.runbook_url, 1000);
  add_part_row(out, "Page", issue_page(lead, sender), 1000);
  const core::RunTold* told = run_of(notification, lead.issue);
  // Of the run as it was told; else as the issue itself says.
  if (told != nullptr && told->report.empty()) {
    add_part_row(out, "Report", annotation(lead.issue, "report"), 1000);
  }
  add_part_row(out, "Tocsin", sender.external_url, 1000);
  return out;
}

bool run_is_over(const Notification& notification, const Issue& issue) {
  const core::RunTold* told = run_of(notification, issue);
  return told != nullptr && !told->outcome.empty();
}

}  // namespace

std::string tag(const Issue& issue) {
  if (issue.status == IssueStatus::resolved) return "RESOLVED";
  std::string out(to_string(issue.severity));
  for (char& c : out) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return out;
}

std::string not_shown(const Notification& notification, std::size_t shown) {
  const std::uint64_t hidden = notification.truncated + (notification.issues.size() - shown);
  if (hidden == 0) return {};
  return issue_count(hidden, "more ") + (hidden == 1 ? " is not shown." : " are not shown.");
}

std::string footer(const Notification& notification) {
  std::string reason = notification.reason;
  if (reason == core::kReplayedReason) reason += ", decided " + when(notification.decided_at);
  return core::visible("Sent by Tocsin to receiver " + notification.receiver + " (" + reason +
                           "), notification " + notification.notification_id,
                       500);
}

MessageParts message_parts(const Notification& notification, const Sender& sender) {
  MessageParts out;
  out.headline = headline(notification);
  out.footer = footer(notification);
  const core::NotifiedIssue* lead = lead_of(notification);
  if (lead == nullptr) return out;
  const Issue& issue = lead->issue;
  const bool over = told_as_over(notification, issue);
  const bool small = notification.minimal;
  out.outcome = outcome_words(notification, issue);
  out.tone = over ? "resolved" : std::string(to_string(issue.severity));
  out.tag = told_tag(notification, issue);
  out.summary = core::visible(first_line(issue), small ? kShort : kMaxSentence);
  out.ended = ended_part(notification, issue);
  out.commands = next_commands(issue, run_is_over(notification, issue), sender.place);
  add_part_row(out.links, "Issue", issue.event_id, 200);
  if (small) {
    add_part_row(out.found, "Why now", notification.why, kShort);
    out.hidden = not_shown(notification, 1);
    return out;
  }
  out.links = link_rows(notification, *lead, sender);
  out.description = core::visible(issue.description, kMaxDescription);
  if (!over) out.console = console_lines(issue);
  out.found = found_rows(notification, *lead);
  if (const core::RunTold* told = run_of(notification, issue)) {
    out.did = {"What Tocsin did", stop_rows(*told)};
  }
  list_followers(notification, *lead, out);
  add_advice(issue, out.advice);
  for (const auto& notified : notification.issues) add_advice(notified.issue, out.advice);
  out.runs = run_parts(notification, issue);
  return out;
}

}  // namespace tocsin::actions
