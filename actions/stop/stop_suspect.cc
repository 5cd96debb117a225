#include "actions/stop/stop_suspect.h"

#include <algorithm>

#include "actions/contract/own_issues.h"
#include "actions/contract/shell_word.h"
#include "actions/stop/stop_approvals.h"
#include "actions/stop/stop_ledger.h"

namespace tocsin::actions {
namespace {

constexpr std::string_view kSuspicion = "max_fraction: ";

core::Issue about_rule(const std::string& rule, const std::string& cluster, core::WallTime at) {
  const std::string name(own_issue(ActionIssue::stop_suspect).name);
  core::Issue out;
  out.source = "/" + cluster + "/rules/" + name;
  out.rule = out.rule_type = name;
  out.severity = core::Severity::error;
  out.labels.set("rule", name);
  out.labels.set("severity", "error");
  out.labels.set("cluster", cluster);
  out.labels.set("suspect", rule);
  out.time = at;
  out.sequence = static_cast<std::uint64_t>(core::nanoseconds(at));
  return out;
}

}  // namespace

std::optional<std::string> beyond_fraction(const MaxFraction& bound, const std::string& rule,
                                           const std::set<core::RunUid>& flagged,
                                           const std::vector<core::RunningRun>& running) {
  // A run that was flagged counts as one of those that ran, also where its stop has ended it.
  std::set<core::RunUid> all = flagged;
  for (const core::RunningRun& one : running) all.insert(one.run.uid);
  if (all.size() < bound.min_jobs) return std::nullopt;
  if (static_cast<double>(flagged.size()) <= bound.fraction * static_cast<double>(all.size())) {
    return std::nullopt;
  }
  return std::string(kSuspicion) + rule + " flags " + std::to_string(flagged.size()) + " of " +
         std::to_string(all.size()) + " running jobs in " + core::to_text(bound.per);
}

std::set<core::RunUid> flagged_runs(StopLedger& ledger, const StopApprovals& approvals,
                                    const core::Issue& issue, core::WallTime since) {
  std::set<core::RunUid> out = ledger.asked_since(issue.rule, since);
  out.merge(approvals.asked_since(issue.rule, since));
  out.insert(issue.run.uid);
  return out;
}

bool suspected(const core::StopRequest& request) { return request.why.starts_with(kSuspicion); }

bool waits_for_suspicion(const core::StopRequest& request) {
  return request.state == "waiting" && suspected(request);
}

core::Issue stop_suspect_issue(const core::StopRequest& first, const std::string& why,
                               const std::string& cluster, const std::vector<std::string>& place) {
  const std::string& rule = first.reason.rule;
  core::Issue out = about_rule(rule, cluster, first.asked_at);
  out.event_id =
      core::make_id("iss_", {out.rule, rule, std::to_string(core::nanoseconds(first.asked_at))});
  out.starts_at = first.asked_at;
  std::string at;
  for (const std::string& word : place) at += " " + shell_word(word);
  const std::string what = why.starts_with(kSuspicion) ? why.substr(kSuspicion.size()) : why;
  out.summary = "No job is stopped for rule " + rule + " without a person's word: " + what +
                ", so the rule itself may be wrong.";
  out.description = "Each of its stops waits until " + core::to_rfc3339(first.until) +
                    " or later. This is told once, for all of them.";
  out.recommendation = "See which wait: tocsin stops list" + at +
                       "  Stop one: tocsin stops approve ID" + at +
                       "  Let one go on: tocsin stops cancel ID" + at;
  out.explicit_expiry = true;
  out.evidence.values = core::ValueMap{{"because_of", rule}};
  out.evidence.first_seen = first.asked_at;
  return out;
}

core::Issue stop_suspect_over(const std::string& rule, const std::string& cluster,
                              core::WallTime at) {
  core::Issue out = about_rule(rule, cluster, at);
  out.event_id =
      core::make_id("iss_", {out.rule, rule, "over", std::to_string(core::nanoseconds(at))});
  out.status = core::IssueStatus::resolved;
  out.resolution = core::Resolution::manual;
  out.starts_at = out.time;
  out.ends_at = at;
  out.summary = "No stop that rule " + rule + " asked for waits any more.";
  return out;
}

}  // namespace tocsin::actions
