#include "actions/stop/stop_failed.h"

#include <algorithm>
#include <array>

#include "actions/contract/own_issues.h"

namespace tocsin::actions {
namespace {

// Labels that say which part of a run a rule looked at: the stop is about the whole.
constexpr std::array<std::string_view, 9> kUnit{"rule",   "severity", "kind",   "tensor", "metric",
                                                "worker", "node",     "device", "mode"};

}  // namespace

std::string_view to_string(StopFailure why) noexcept {
  static constexpr std::array<std::string_view, 5> kNames{"failed", "refused", "expired", "stale",
                                                          "held_back"};
  return kNames[static_cast<std::size_t>(why)];
}

core::Labels without_unit(const core::Labels& labels) {
  core::Labels out;
  for (const auto& [name, value] : labels.entries()) {
    if (std::find(kUnit.begin(), kUnit.end(), name) == kUnit.end()) out.set(name, value);
  }
  return out;
}

core::Issue stop_failed_issue(const FailedStop& stop) {
  const std::string rule(own_issue(ActionIssue::stop_failed).name);
  const std::string reason(to_string(stop.why));
  const std::string run = to_text(stop.run.uid);
  core::Issue out;
  out.event_id = core::make_id("iss_", {rule, run, std::to_string(stop.run.attempt), reason});
  out.source = "/" + stop.cluster + "/rules/" + rule;
  out.sequence = stop.run.attempt;  // grows per run
  out.time = out.starts_at = stop.at;
  out.rule = out.rule_type = rule;
  out.severity = core::Severity::error;
  out.labels = without_unit(stop.labels);
  out.labels.set("rule", rule);
  out.labels.set("severity", "error");
  out.labels.set("cluster", stop.cluster);
  out.labels.set("reason", reason);
  if (!stop.run.uid.nil()) out.labels.set("run_uid", run);
  if (!stop.run.job.empty()) out.labels.set("job", stop.run.job);
  const std::string who = stop.run.job.empty() ? "Run " + run : stop.run.job;
  out.summary =
      who + " was not stopped (attempt " + std::to_string(stop.run.attempt) + "): " + stop.detail;
  out.recommendation = stop.why == StopFailure::stale
                           ? "Nothing, if the run was repaired before it was started again."
                           : "Look at the run, and stop it by hand if it should not go on.";
  out.run = stop.run;
  out.explicit_expiry = stop.why != StopFailure::stale && !stop.run.uid.nil();
  out.evidence.values =
      core::ValueMap{{"command_id", stop.command_id}, {"because_of", stop.caused_by_rule}};
  out.evidence.first_seen = stop.at;
  return out;
}

}  // namespace tocsin::actions
