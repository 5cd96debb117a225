#include "actions/stop/stop_by_hand.h"

#include <algorithm>
#include <utility>

#include "actions/contract/own_issues.h"

namespace tocsin::actions {
namespace {

core::Duration total_of(const core::Command& command) {
  const core::Value* deadline = core::find(command.args, "deadline");
  const auto* text =
      deadline == nullptr ? nullptr : core::as<std::string>(core::find(*deadline, "total"));
  const auto total = text == nullptr ? std::nullopt : core::parse_duration(*text);
  return total.value_or(StopTerms().total);
}

bool in_force(const HeldStop& held, core::WallTime now) {
  if (held.command.dry_run) return false;
  const bool taken = held.accepted;
  if (!taken && (held.refused || (held.command.expires_at && *held.command.expires_at <= now))) {
    return false;
  }
  return now < held.command.issued_at + total_of(held.command);
}

bool asks_the_same(const core::Command& held, const StopTerms& terms) {
  const auto* force = core::as<bool>(core::find(held.args, "allow_force"));
  return core::text_at(held.args, "mode") == terms.mode &&
         (!terms.allow_force || (force != nullptr && *force));
}

}  // namespace

StopByHand stop_by_hand(const StopTerms& terms, const core::RunRef& run,
                        const core::CurrentRun& current, const std::optional<HeldStop>& held,
                        core::WallTime now) {
  if (held && held->command.attempt > run.attempt) {
    return {StopByHand::Leave::newer_attempt, held->command};
  }
  const bool same = held && held->command.attempt == run.attempt;
  if (same && in_force(*held, now) && asks_the_same(held->command, terms)) {
    return {StopByHand::Leave::under_way, held->command};
  }
  core::Issue about;
  about.run = run;
  about.time = now;
  StopByHand out{StopByHand::Leave::send, stop_command(terms, about, current, now)};
  if (held) {
    out.command.revision =
        std::max<std::uint64_t>(out.command.revision, held->command.revision + 1);
  }
  return out;
}

core::Issue stopped_by_hand_issue(const core::Command& command, const core::JobEvent& run,
                                  const std::string& cluster) {
  const std::string rule(own_issue(ActionIssue::stopped_by_hand).name);
  const std::string uid = to_text(command.run);
  core::Issue out;
  out.event_id = core::make_id(
      "iss_", {rule, uid, std::to_string(command.attempt), std::to_string(command.revision)});
  out.source = "/" + cluster + "/rules/" + rule;
  out.sequence = command.revision;
  out.time = out.starts_at = command.issued_at;
  out.rule = out.rule_type = rule;
  out.severity = core::Severity::info;
  out.labels = run.labels;
  out.labels.set("rule", rule);
  out.labels.set("severity", "info");
  out.labels.set("cluster", cluster);
  out.labels.set("run_uid", uid);
  if (!run.run.job.empty()) out.labels.set("job", run.run.job);
  out.summary = (run.run.job.empty() ? "run " + uid : run.run.job) + ", attempt " +
                std::to_string(command.attempt) + ", is stopped by " + command.requested_by +
                (command.reason.summary.empty() ? "" : ": " + command.reason.summary);
  out.run = run.run;
  out.step = run.step;
  out.evidence.values =
      core::ValueMap{{"command_id", command.command_id}, {"requested_by", command.requested_by}};
  out.evidence.first_seen = command.issued_at;
  return out;
}

}  // namespace tocsin::actions
