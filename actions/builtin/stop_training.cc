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

#include "actions/contract/descriptor.h"
#include "actions/contract/label_is.h"
#include "actions/contract/own_issues.h"
#include "actions/integration/command_frame.h"
#include "actions/message/message.h"
#include "actions/stop/local_process.h"
#include "actions/stop/stop_approvals.h"
#include "actions/stop/stop_command.h"
#include "actions/stop/stop_failed.h"
#include "actions/stop/stop_guard.h"
#include "actions/stop/stop_ledger.h"
#include "actions/stop/stop_step.h"
#include "core/fields/stop_request.h"

namespace tocsin::actions {
namespace {

using core::Duration;
using core::WallTime;

struct StopConfig final : ActionConfig {
  bool armed = false;
  StopTerms terms;
  StopGuards guards;
  std::uint64_t max_count = 3;
  Duration max_per = std::chrono::minutes(10);
  std::string approval = "never";  // never | always | label=value, …
  Duration approval_timeout = std::chrono::minutes(30);
  std::string on_approval_timeout = "cancel";

  [[nodiscard]] core::Result<std::unique_ptr<core::Action>> build(
      const Environment& environment, const IntegrationName& name,
      const CommonConfig& common) const override;
  [[nodiscard]] std::vector<core::Issue> abandoned(const core::Notification& notification,
                                                   core::DeliveryState state,
                                                   const std::string& cluster,
                                                   WallTime now) const override;
};

// The first firing issue of each (run, attempt): the most severe one. A stop that failed asks for
// no other stop, nor does one that a person asked for.
std::vector<core::NotifiedIssue> targets(const core::Notification& notification) {
  std::vector<core::NotifiedIssue> out;
  for (const auto& notified : notification.issues) {
    if (notified.issue.status != core::IssueStatus::firing) continue;
    if (is(notified.issue.rule, ActionIssue::stop_failed) ||
        is(notified.issue.rule, ActionIssue::stopped_by_hand) ||
        is(notified.issue.rule, ActionIssue::stop_waits)) {
      continue;
    }
    const bool known = std::any_of(out.begin(), out.end(), [&](const auto& other) {
      return other.issue.run.uid == notified.issue.run.uid &&
             other.issue.run.attempt == notified.issue.run.attempt;
    });
    if (!known) out.push_back(notified);
  }
  return out;
}

std::string name_of(const core::RunRef& run) {
  return (run.job.empty() ? "run " : run.job + ", run ") + to_text(run.uid) + " attempt " +
         std::to_string(run.attempt);
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
      : cfg_(cfg),
        name_(name.id),
        place_(environment.place),
        frame_(environment),
        telemetry_(*environment.telemetry),
        cluster_(environment.cluster),
        ledger_(environment.stops != nullptr ? environment.stops : &own_),
        publish_(environment.publish),
        approvals_(environment.approvals != nullptr ? environment.approvals : &own_approvals_) {}

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
          {"dry_run", !cfg_.armed},
          {"issue_key", notified.issue_key}});
    }
    return core::to_json(std::move(stops));
  }

  core::AttemptOutcome execute(const core::Notification& notification, std::uint32_t /*attempt*/,
                               std::chrono::milliseconds /*budget*/) override {
    return issue_by_issue(targets(notification), [&](const core::NotifiedIssue& one) {
      return stop(one, notification.decided_at);
    });
  }

 private:
  core::AttemptOutcome stop(const core::NotifiedIssue& notified, WallTime decided) {
    const core::Issue& issue = notified.issue;
    const auto current = frame_.current(issue.run.uid);
    if (const auto why = refusal(issue, cfg_.guards, current)) return refused(issue, *why);
    if (cfg_.armed && pace_to_come(issue, current, frame_.now() - decided)) {
      return held("pace_unknown", name_of(issue.run) +
                                      " has several ranks and has not told the time of a step yet");
    }
    core::Command command = command_for(notified, current);
    if (!cfg_.armed) {
      return declined("dry_run", "dry run, not armed: would ask " + name_of(issue.run) + " to " +
                                     cfg_.terms.mode + " (" + command.command_id + ") because " +
                                     command.reason.summary);
    }
    if (const std::string why = wants_word(issue);
        !why.empty() && !ledger_->who_asked(command.command_id)) {
      return wait_for_word(command, issue, why);
    }
    const auto answer = ledger_->reserve(command, {cfg_.max_count, cfg_.max_per});
    if (answer.leave == StopLedger::Leave::held_back && cfg_.approval != "never") {
      return wait_for_word(command, issue, beyond_limit(answer));
    }
    if (answer.leave != StopLedger::Leave::send) return not_sent(command, answer, issue);
    command.revision = answer.revision;
    return frame_.write(
        command,
        "asked " + name_of(issue.run) + " to " + cfg_.terms.mode + " by " + command.command_id +
            (process_fence(issue.run.ref) ? "" : "; cooperative only, the process is not known"),
        [&] { ledger_->release(command); });
  }

  [[nodiscard]] std::string wants_word(const core::Issue& issue) const {
    if (cfg_.approval == "never") return {};
    if (cfg_.approval == "always") return "approval: always";
    for (const std::string& text : label_list(cfg_.approval)) {
      if (meets(issue, text)) return "approval: " + text;
    }
    return {};
  }

  [[nodiscard]] std::string beyond_limit(const StopLedger::Answer& answer) const {
    return "max_stops, " + std::to_string(answer.recent) + " in the last " +
           core::to_text(cfg_.max_per);
  }

  // Nothing is asked of the run; the record of the request is what a person answers, and the leader
  // writes the command then.
  core::AttemptOutcome wait_for_word(const core::Command& command, const core::Issue& issue,
                                     const std::string& why) {
    core::AttemptOutcome out;
    out.handles = {{"command_id", command.command_id}};
    auto request = approvals_->find(command.command_id);
    if (!request) {
      request = request_for(command, issue, why);
      if (!approvals_->begin(*request)) {
        return declined("refused", name_of(issue.run) + " is not stopped: too many stops wait");
      }
      if (const auto written = publish_(core::stop_request_record(*request)); !written) {
        approvals_->forget(request->id);
        return not_written(std::move(out), written.error());
      }
    }
    if (request->state == "waiting") {
      out.code = "awaiting_approval";
      out.detail = name_of(issue.run) + " waits for approval until " +
                   core::to_rfc3339(request->until) + " (" + request->why +
                   "): tocsin stops approve " + request->id;
      // Told each time: its event id is the same, and who is told twice of it hears it once.
      out.issues.push_back(stop_waits_issue(*request, cluster_, place_));
      return out;
    }
    if (request->state == "approved") {
      out.code = "already_requested";
      out.detail =
          name_of(issue.run) + " was approved by " + request->decided_by + ": " + request->id;
      return out;
    }
    out = declined(request->state, name_of(issue.run) + " is not stopped: its stop was " +
                                       request->state + " (" + request->id + ")");
    return out;
  }

  [[nodiscard]] core::StopRequest request_for(const core::Command& command,
                                              const core::Issue& issue,
                                              const std::string& why) const {
    core::StopRequest out;
    out.id = command.command_id;
    out.run = issue.run;
    out.labels = issue.labels;
    out.reason = command.reason;
    out.severity = to_string(issue.severity);
    out.terms = terms_value(cfg_.terms);
    out.why = why;
    out.integration = name_;
    out.asked_at = frame_.now();
    out.until = out.asked_at + cfg_.approval_timeout;
    out.on_timeout = cfg_.on_approval_timeout;
    return out;
  }

  core::AttemptOutcome refused(const core::Issue& issue, const Refusal& why) const {
    const std::string text = name_of(issue.run) + " is not stopped: " + why.text;
    core::AttemptOutcome out = declined(why.code, text);
    if (!cfg_.armed) return out;
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
        return refused(issue, stale(answer.newest_attempt, "was asked to stop"));
      case StopLedger::Leave::held_back:
        return refused(
            issue, {Refusal::Then::told, StopFailure::held_back, "refused", beyond_limit(answer)});
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

  StopConfig cfg_;
  std::string name_;
  std::vector<std::string> place_;
  CommandFrame frame_;
  core::Telemetry& telemetry_;
  std::string cluster_;
  StopLedger own_;  // where nobody keeps one
  StopLedger* ledger_;
  std::function<core::Status(const core::OutRecord&)> publish_;
  StopApprovals own_approvals_;
  StopApprovals* approvals_;
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
  if (!armed) return out;
  const bool late = state == core::DeliveryState::expired;
  for (const auto& notified : targets(notification)) {
    if (notified.issue.shadow) continue;
    out.push_back(failed_stop(notified.issue, late ? StopFailure::expired : StopFailure::failed,
                              late ? "the command could not be written within max_age"
                                   : "the command could not be written",
                              cluster, now));
  }
  return out;
}

void check(config::Reader& in, const StopConfig& cfg) {
  for (const auto& [key, texts] :
       {std::pair{"allow", &cfg.guards.allow}, std::pair{"deny", &cfg.guards.deny}}) {
    for (const std::string& text : *texts) {
      if (!parse_label(text)) in.error(key, "\"" + text + "\": expected label=value");
    }
  }
  if (cfg.approval != "never" && cfg.approval != "always") {
    const auto list = label_list(cfg.approval);
    const bool good = !list.empty() && std::all_of(list.begin(), list.end(), [](const auto& one) {
      return parse_label(one).has_value();
    });
    if (!good) {
      in.error("approval",
               "\"" + cfg.approval + "\": expected never, always, or label=value, label=value");
    }
  }
  if (cfg.terms.graceful > cfg.terms.total) in.error("deadline", "graceful is longer than total");
  if (cfg.terms.ack > cfg.terms.graceful) in.error("deadline", "ack is longer than graceful");
}

std::shared_ptr<const ActionConfig> read_stop_training(config::Reader& in) {
  auto cfg = std::make_shared<StopConfig>();
  in.optional("armed", cfg->armed, "false: dry run, everything is decided and nothing is sent");
  in.optional("mode", cfg->terms.mode, config::one_of({"stop", "checkpoint_then_stop", "pause"}),
              "what the training loop is asked to do");
  in.section("deadline", "from the command's issue", [&](config::Reader& deadline) {
    deadline.optional("ack", cfg->terms.ack, config::positive(),
                      "the loop has accepted, else the process gets SIGTERM");
    deadline.optional("graceful", cfg->terms.graceful, config::positive(),
                      "checkpoint and end, else the process gets SIGTERM");
    deadline.optional("total", cfg->terms.total, config::positive(), "then the stop has failed");
  });
  in.optional("grace", cfg->terms.grace, config::positive(), "from SIGTERM to SIGKILL");
  in.optional("allow_force", cfg->terms.allow_force, "SIGKILL is allowed");
  in.optional("expires", cfg->terms.expires, config::positive(),
              "a command that nobody has taken by then is void");
  in.optional("allow", cfg->guards.allow, "label=value; all must hold, else no stop");
  in.optional("deny", cfg->guards.deny, "label=value; if any holds, no stop");
  in.optional("min_step", cfg->guards.min_step, config::at_least<std::int64_t>(0),
              "no stop before it");
  in.optional("min_consecutive", cfg->guards.min_consecutive, config::at_least<std::uint64_t>(1),
              "how often the rule must have seen it");
  in.section("max_stops", "blast radius of this action", [&](config::Reader& limit) {
    limit.optional("count", cfg->max_count, config::at_least<std::uint64_t>(1), "runs …");
    limit.optional("per", cfg->max_per, config::positive(), "… in this time");
  });
  in.optional("approval", cfg->approval,
              "never, always, or label=value, …: such a stop waits for a person's word; then "
              "max_stops waits for it too");
  in.optional("approval_timeout", cfg->approval_timeout,
              config::between<Duration>(std::chrono::seconds(1), std::chrono::hours(5 * 24)),
              "how long it waits");
  in.optional("on_approval_timeout", cfg->on_approval_timeout,
              config::one_of({"cancel", "proceed"}), "what follows then");
  check(in, *cfg);
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
