#include "actions/message/headline.h"

#include <algorithm>
#include <set>
#include <utility>

#include "actions/message/episode_words.h"
#include "actions/message/run_words.h"
#include "core/replay.h"
#include "core/visible_text.h"

namespace tocsin::actions {
namespace {

using core::Issue;
using core::Notification;

constexpr std::size_t kMaxHeadline = 240;
constexpr std::size_t kMaxJob = 48;

std::string job_of(const Issue& issue) {
  return issue.run.job.empty() ? issue.labels.get("job") : issue.run.job;
}

/// The job of the lead by name, and how many others there are.
std::string jobs(const Notification& notification, const Issue& lead) {
  const std::string job = job_of(lead);
  std::set<std::string> others;
  for (const auto& notified : notification.issues) others.insert(job_of(notified.issue));
  others.erase(job);
  others.erase("");
  std::string out = core::visible(job, kMaxJob);
  if (out.empty() || others.empty()) return out;
  return out + " and " + std::to_string(others.size()) +
         (others.size() == 1 ? " other" : " others");
}

/// What an outcome says and the title has said already is not said again.
std::string further(const std::string& outcome, const std::string& title) {
  for (const std::string_view end : {"failed", "lost"}) {
    const std::string words = "job " + std::string(end);
    if (!outcome.starts_with(words) || title.find(end) == std::string::npos) continue;
    const std::size_t rest = outcome.find_first_not_of(", ", words.size());
    return rest == std::string::npos ? std::string() : outcome.substr(rest);
  }
  return outcome;
}

/// Why a message comes of which no issue is the news.
std::string occasion_words(const Notification& notification) {
  if (notification.reason == "escalation") return "escalated";
  if (notification.reason == "fallback") return "sent to the backup";
  if (notification.reason == "acknowledged") return "acknowledged";
  return notification.reason == "ack_expired" ? "acknowledgement ended" : "";
}

}  // namespace

const core::NotifiedIssue* lead_of(const Notification& notification) {
  if (notification.issues.empty()) return nullptr;
  // What is news before what is over, then by severity, then as they stand: the end of a run may
  // have been read for one of its issues and not yet for the next.
  const auto rank = [&](const core::NotifiedIssue& one) {
    return std::pair(!told_as_over(notification, one.issue), one.issue.severity);
  };
  return &*std::max_element(notification.issues.begin(), notification.issues.end(),
                            [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
}

bool told_as_over(const Notification& notification, const Issue& issue) {
  if (issue.status == core::IssueStatus::firing) return false;
  return issue.resolution != core::Resolution::job_ended ||
         notification.kind == core::NotificationKind::close ||
         notification.reason == "some_resolved";
}

std::string outcome_words(const Notification& notification, const Issue& issue) {
  const core::RunTold* told = run_of(notification, issue);
  const std::string ended = resolution_words(issue);
  const std::string of_run = told == nullptr ? std::string() : run_outcome(*told);
  if (ended.empty()) {
    if (const std::string now = occasion_words(notification); !now.empty()) return now;
    if (!of_run.empty()) return of_run;
    return notification.kind == core::NotificationKind::repeat ? "still firing" : "";
  }
  const bool by_run = issue.resolution == core::Resolution::job_ended;
  return by_run && !of_run.empty() ? of_run : ended;
}

std::string headline(const Notification& notification) {
  const core::NotifiedIssue* lead = lead_of(notification);
  if (lead == nullptr) return notification.firing ? "[issue]" : "[resolved]";
  const Issue& issue = lead->issue;
  const bool over = told_as_over(notification, issue);
  std::string out = over ? "[resolved]" : "[" + std::string(to_string(issue.severity)) + "]";
  if (notification.reason == "digest") out += " digest,";
  if (notification.reason == core::kReplayedReason) out += " late,";
  if (const std::string who = jobs(notification, issue); !who.empty()) out += " " + who + ":";
  const std::string what = over ? past_title(issue) : title(issue);
  out += " " + what;
  // Of an end that is news: "since", for nothing has recovered.
  Issue still = issue;
  if (!over) still.status = core::IssueStatus::firing;
  out += span_of_steps(still);
  if (const std::string came = further(outcome_words(notification, issue), what); !came.empty())
    out += " – " + came;
  return core::visible(out, kMaxHeadline);
}

}  // namespace tocsin::actions
