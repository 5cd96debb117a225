// Asks a run to stop: writes the fenced `stop` command, which the training loop obeys at its next
// step and the node agent enforces.
//
// Sends       one command per (run, attempt) to `commands`, slot <run uid>/stop.
// Retries     while the topic cannot be written, until the command would have expired.
// Idempotent  the command id is a hash of run and attempt: all issues of one attempt share it.
// Fenced      by the attempt and the launch that run now: a late issue of an older attempt stops
//             nothing, and says so as the issue stop_failed.
// Needs       armed: true; without it everything is decided and nothing is sent (dry run).
// Source      our own: docs/actions/stop_training.md.

#include <algorithm>
#include <optional>
#include <set>

#include "actions/contract/descriptor.h"
#include "actions/contract/own_issues.h"
#include "actions/integration/command_frame.h"
#include "actions/stop/firing_issues.h"
#include "actions/stop/local_process.h"
#include "actions/stop/stop_approvals.h"
#include "actions/stop/stop_command.h"
#include "actions/stop/stop_failed.h"
#include "actions/stop/stop_guard.h"
#include "actions/stop/stop_ledger.h"
#include "actions/stop/stop_prefix.h"
#include "actions/stop/stop_settings.h"
#include "actions/stop/stop_step.h"
#include "actions/stop/stop_suspect.h"
#include "actions/stop/stop_waits.h"

namespace tocsin::actions {
namespace {

using core::Duration;
using core::WallTime;

struct StopConfig final : ActionConfig {
  StopSettings settings;

  [[nodiscard]] core::Result<std::unique_ptr<core::Action>> build(
      const Environment& environment, const IntegrationName& name,
      const CommonConfig& common) const override;
  [[nodiscard]] std::vector<core::Issue> abandoned(const core::Notification& notification,
                                                   core::DeliveryState state,
                                                   const std::string& cluster,
                                                   WallTime now) const override;
  [[nodiscard]] std::vector<std::string> intents() const override { return {settings.intent()}; }
};

// The first firing issue of each (run, attempt): the most severe one. A stop that failed asks for
// no other stop, nor does one that a person asked for, nor an adjustment.
std::vector<core::NotifiedIssue> targets(const core::Notification& notification) {
  std::vector<core::NotifiedIssue> out;
  for (const auto& notified : notification.issues) {
    if (notified.issue.status != core::IssueStatus::firing) continue;
    if (is_own_issue(notified.issue.rule)) continue;
    const bool known = std::any_of(out.begin(), out.end(), [&](const auto& other) {
      return other.issue.run.uid == notified.issue.run.uid &&
             other.issue.run.attempt == notified.issue.run.attempt;
    });
    if (!known) out.push_back(notified);
  }
  return out;
}

core::Issue failed_stop(const core::Issue& issue, StopFailure why, std::string detail,
                        const std::string& cluster, WallTime now) {
  FailedStop out;
  out.run = issue.run;
  out.labels = issue.labels;
  out.cluster = cluster;
  out.why = why;
  out.detail = std::move(detail);
  out.command_id = core::command_id(issue.run.uid, issue.run.attempt, "stop");
  out.caused_by_rule = issue.rule;
  out.at = now;
  return stop_failed_issue(out);
}

class StopTraining final : public core::Action {
 public:
  StopTraining(const StopConfig& cfg, const Environment& environment, const IntegrationName& name)
      : cfg_(cfg.settings),
        no_stops_(environment.stops_dry_run),
        frame_(environment),
        telemetry_(*environment.telemetry),
        cluster_(environment.cluster),
        ledger_(environment.stops != nullptr ? environment.stops : &own_),
        approvals_(environment.approvals != nullptr ? environment.approvals : &own_approvals_),
        firing_(environment.firing),
        running_(environment.running_runs),
        waits_(environment, name.id, *approvals_, cfg_) {}

  [[nodiscard]] core::Result<std::string> render(
      const core::Notification& notification) const override {
    core::ValueList stops;
    for (const auto& notified : targets(notification)) {
      stops.push_back(core::ValueMap{
          {"command_id",
           core::command_id(notified.issue.run.uid, notified.issue.run.attempt, "stop")},
          {"run", to_text(notified.issue.run.uid)},
          {"attempt", std::uint64_t{notified.issue.run.attempt}},
          {"mode", cfg_.terms.mode},
          {"dry_run", !held_dry(notified.issue, notification.route_id).empty()},
          {"issue_key", notified.issue_key}});
    }
    return core::to_json(std::move(stops));
  }

  core::AttemptOutcome execute(const core::Notification& notification, std::uint32_t /*attempt*/,
                               std::chrono::milliseconds /*budget*/) override {
    const auto stop_one = [&](const core::NotifiedIssue& one) {
      return stop(one, notification.decided_at, held_dry(one.issue, notification.route_id));
    };
    if (cfg_.prefix.empty()) return issue_by_issue(targets(notification), stop_one);
    return issue_by_issue(targets(notification), [&](const core::NotifiedIssue& one) {
      return stop_by_prefix(one, notification.route_id, stop_one);
    });
  }

 private:
  // Not armed, of a route or a rule that stays dry, or everything is.
  [[nodiscard]] std::string held_dry(const core::Issue& issue, const std::string& route_id) const {
    if (no_stops_ && cfg_.armed) return "stops.dry_run";
    return cfg_.held_dry(issue, route_id);
  }

  core::AttemptOutcome stop(const core::NotifiedIssue& notified, WallTime decided,
                            const std::string& dry) {
    const core::Issue& issue = notified.issue;
    const auto current = frame_.current(issue.run.uid);
    if (const auto why = refusal(issue, cfg_.guards, current)) {
      return refused(issue, *why, dry.empty());
    }
    if (dry.empty() && pace_to_come(issue, current, frame_.now() - decided)) {
      return held("pace_unknown", name_of(issue.run) +
                                      " has several ranks and has not told the time of a step yet");
    }
    core::Command command = command_for(notified, current);
    if (!dry.empty()) {
      return declined("dry_run", "dry run, " + dry + ": would ask " + name_of(issue.run) + " to " +
                                     cfg_.terms.mode + " (" + command.command_id + ") because " +
                                     command.reason.summary);
    }
    const bool asked = ledger_->who_asked(command.command_id).has_value();
    if (const auto why = asked ? StopWaits::Why{} : reason_to_wait(issue); why.waits()) {
      return waits_.wait(command, issue, why);
    }
    // Written again for workers that have started since: what was approved stays so.
    if (const auto request = asked ? approvals_->find(command.command_id) : std::nullopt;
        request && request->state == "approved") {
      command = approved(std::move(command), request->decided_by);
    }
    const auto answer = ledger_->reserve(command, cfg_.limit);
    if (answer.leave == StopLedger::Leave::held_back && cfg_.approval != "never") {
      return waits_.wait(command, issue, {beyond_limit(answer), {}});
    }
    if (answer.leave != StopLedger::Leave::send) return not_sent(command, answer, issue);
    command.revision = answer.revision;
    return frame_.write(
        command,
        "asked " + name_of(issue.run) + " to " + cfg_.terms.mode + " by " + command.command_id +
            (process_fence(issue.run.ref) ? "" : "; cooperative only, the process is not known"),
        [&] { ledger_->release(command); });
  }

  // SageMaker's way: the jobs that run under a name, whichever of them the issue is about.
  core::AttemptOutcome stop_by_prefix(
      const core::NotifiedIssue& notified, const std::string& route_id,
      const std::function<core::AttemptOutcome(const core::NotifiedIssue&)>& stop_one) {
    const auto jobs = named_so(running(), cfg_.prefix);
    const std::string what = "prefix \"" + cfg_.prefix + "\"";
    if (jobs.empty()) return declined("no_match", what + " matches no running job");
    if (jobs.size() > cfg_.max_jobs) {
      return refused(notified.issue,
                     {Refusal::Then::told, StopFailure::refused, "refused",
                      what + " matches " + std::to_string(jobs.size()) + " running jobs (" +
                          names_of(jobs) + "), max_jobs is " + std::to_string(cfg_.max_jobs)},
                     held_dry(notified.issue, route_id).empty());
    }
    std::vector<core::NotifiedIssue> each;
    each.reserve(jobs.size());
    for (const core::RunningRun& job : jobs) each.push_back(on_behalf(notified, job));
    return issue_by_issue(each, stop_one);
  }

  // The quorum first: without it nobody is bothered.
  [[nodiscard]] StopWaits::Why reason_to_wait(const core::Issue& issue) const {
    StopWaits::Why out;
    out.word = cfg_.wants_word(issue);
    const auto flagged =
        flagged_runs(*ledger_, *approvals_, issue, frame_.now() - cfg_.fraction.per);
    if (const auto why = beyond_fraction(cfg_.fraction, issue.rule, flagged, running())) {
      out.word = *why;
    }
    if (!cfg_.quorum.wanted()) return out;
    std::set<std::string> fire{issue.rule};
    if (firing_ != nullptr) fire.merge(firing_->rules_of(issue.run.uid, issue.run.attempt));
    if (!cfg_.quorum.met(fire)) out.quorum = cfg_.quorum.so_far(fire);
    return out;
  }

  [[nodiscard]] std::vector<core::RunningRun> running() const {
    return running_ ? running_() : std::vector<core::RunningRun>();
  }

  [[nodiscard]] std::string beyond_limit(const StopLedger::Answer& answer) const {
    return "max_stops, " + std::to_string(answer.recent) + " in the last " +
           core::to_text(cfg_.limit.per);
  }

  core::AttemptOutcome refused(const core::Issue& issue, const Refusal& why, bool in_force) const {
    const std::string text = name_of(issue.run) + " is not stopped: " + why.text;
    core::AttemptOutcome out = declined(why.code, text);
    if (!in_force) return out;
    telemetry_
        .counter("tocsin_router_stop_guard_refusals_total",
                 "stops not asked for, by what held them",
                 {{"guard", why.code == "refused" ? to_string(why.why) : why.code}})
        .add();
    if (why.then == Refusal::Then::not_yet) return held(why.code, text);
    if (why.then == Refusal::Then::told) {
      out.issues.push_back(failed_stop(issue, why.why, why.text, cluster_, frame_.now()));
    }
    return out;
  }

  // What the ledger says against it.
  core::AttemptOutcome not_sent(const core::Command& command, const StopLedger::Answer& answer,
                                const core::Issue& issue) const {
    switch (answer.leave) {
      case StopLedger::Leave::newer_attempt:
        return refused(issue, stale(answer.newest_attempt, "was asked to stop"), true);
      case StopLedger::Leave::held_back:
        return refused(
            issue, {Refusal::Then::told, StopFailure::held_back, "refused", beyond_limit(answer)},
            true);
      default: {
        core::AttemptOutcome out;
        const bool withdrawn = answer.leave == StopLedger::Leave::withdrawn;
        out.declined = withdrawn;
        out.code = withdrawn ? "withdrawn" : "already_requested";
        out.detail = name_of(issue.run) + " was asked before by " + command.command_id +
                     (withdrawn ? ", and that was withdrawn" : "");
        out.handles = {{"command_id", command.command_id}};
        return out;
      }
    }
  }

  [[nodiscard]] core::Command command_for(const core::NotifiedIssue& notified,
                                          const std::optional<core::CurrentRun>& current) const {
    core::Command out = stop_command(cfg_.terms, notified.issue, current, frame_.now());
    out.requested_by = "router";
    out.reason = reason_of(notified);
    return out;
  }

  StopSettings cfg_;
  bool no_stops_;
  CommandFrame frame_;
  core::Telemetry& telemetry_;
  std::string cluster_;
  StopLedger own_;  // where nobody keeps one
  StopLedger* ledger_;
  StopApprovals own_approvals_;
  StopApprovals* approvals_;
  const FiringIssues* firing_;
  std::function<std::vector<core::RunningRun>()> running_;
  StopWaits waits_;
};

core::Result<std::unique_ptr<core::Action>> StopConfig::build(
    const Environment& environment, const IntegrationName& name,
    const CommonConfig& /*common*/) const {
  return make_command_action<StopTraining>(*this, environment, name);
}

std::vector<core::Issue> StopConfig::abandoned(const core::Notification& notification,
                                               core::DeliveryState state,
                                               const std::string& cluster, WallTime now) const {
  std::vector<core::Issue> out;
  if (!settings.armed) return out;
  const bool late = state == core::DeliveryState::expired;
  for (const auto& notified : targets(notification)) {
    if (notified.issue.shadow ||
        !settings.held_dry(notified.issue, notification.route_id).empty()) {
      continue;
    }
    out.push_back(failed_stop(notified.issue, late ? StopFailure::expired : StopFailure::failed,
                              late ? "the command could not be written within max_age"
                                   : "the command could not be written",
                              cluster, now));
  }
  return out;
}

std::shared_ptr<const ActionConfig> read_stop_training(config::Reader& in) {
  auto cfg = std::make_shared<StopConfig>();
  read(in, cfg->settings);
  return cfg;
}

}  // namespace

ActionDescriptor stop_training() {
  CommonConfig defaults;
  defaults.send_resolved = false;
  defaults.max_age = std::chrono::minutes(10);  // a stop that comes later is not what was decided
  return {"stop_training",
          "Asks the run to stop, by its training loop first.",
          {.coalesce = false,
           .every_issue = true,
           .dedup = true,
           .stateful = false,
           .stops = true,
           .reads_issues = true},
          read_stop_training,
          defaults};
}

}  // namespace tocsin::actions
