#include "actions/steer/adjust_told.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "actions/contract/own_issues.h"

namespace tocsin::actions {
namespace {

// Labels that say which part of a run a rule looked at: an adjustment is about the whole.
constexpr std::array<std::string_view, 9> kPartOfRun{
    "rule", "severity", "kind", "tensor", "metric", "worker", "node", "device", "mode"};

core::Labels of_the_run(const core::Labels& labels) {
  core::Labels out;
  for (const auto& [name, value] : labels.entries()) {
    if (std::find(kPartOfRun.begin(), kPartOfRun.end(), name) == kPartOfRun.end()) {
      out.set(name, value);
    }
  }
  return out;
}

}  // namespace

core::Issue adjust_told(const core::NotifiedIssue& because, const core::Command& command,
                        bool applied, const std::string& what, const std::string& words,
                        const std::string& cluster, core::WallTime now) {
  const core::RunRef& run = because.issue.run;
  const std::string rule(
      own_issue(applied ? ActionIssue::adjusted : ActionIssue::adjust_failed).name);
  const core::Severity severity = applied ? core::Severity::info : core::Severity::warning;
  core::Issue out;
  out.event_id = core::make_id("iss_", {rule, command.command_id});
  out.source = "/" + cluster + "/rules/" + rule;
  out.sequence = command.revision;
  out.time = out.starts_at = now;
  out.rule = out.rule_type = rule;
  out.severity = severity;
  out.labels = of_the_run(because.issue.labels);
  out.labels.set("rule", rule);
  out.labels.set("severity", std::string(to_string(severity)));
  out.labels.set("cluster", cluster);
  out.labels.set("adjustment", command.action.substr(command.action.find('/') + 1));
  out.labels.set("run_uid", to_text(run.uid));
  if (!run.job.empty()) out.labels.set("job", run.job);
  const std::string who = run.job.empty() ? "run " + to_text(run.uid) : run.job;
  out.summary =
      applied ? who + ": " + what + " was set because of " + because.issue.rule + ": " + words + "."
              : who + ": " + what + " was not set, asked because of " + because.issue.rule + ": " +
                    words + ".";
  out.recommendation =
      applied ? "Look whether " + because.issue.rule + " ends; else stop the run or set it by hand."
              : "Set it by hand, or see docs/actions/adjust.md for what each reason means.";
  out.run = run;
  out.explicit_expiry = true;
  out.evidence.values = core::ValueMap{{"command_id", command.command_id},
                                       {"because_of", because.issue.rule},
                                       {"args", command.args}};
  out.evidence.first_seen = now;
  return out;
}

}  // namespace tocsin::actions
