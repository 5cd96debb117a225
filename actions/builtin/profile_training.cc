// Asks a run where its ranks stand, and for a trace of steps to come, because an issue was found.
//
// Sends       one command per issue and episode to `commands`, slot <run uid>/profile: stacks at once, a
//             trace of the same steps on all ranks.
// Retries     while the topic cannot be written, or the run has not told its pace, until max_age.
// Idempotent  command id and revision are those of the episode: a hook takes them once.
// Needs       a hook in Python. It answers with acks; where it stands is the issue worker_place.
// Source      our own: docs/actions/profile_training.md.

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "actions/contract/descriptor.h"
#include "actions/integration/command_frame.h"
#include "actions/profile/profile_ledger.h"
#include "actions/profile/trace_start.h"

namespace tocsin::actions {
namespace {

using core::Duration;
using core::WallTime;

struct ProfileConfig final : ActionConfig {
  // A rank that hears of it later does not answer any more.
  static constexpr Duration kExpires = std::chrono::minutes(1);

  bool stacks = true;
  std::int64_t trace = 0;  // steps
  ProfileLimits limits;

  [[nodiscard]] core::Result<std::unique_ptr<core::Action>> build(
      const Environment& environment, const IntegrationName& name,
      const CommonConfig& common) const override;
};

std::string id_of(const core::NotifiedIssue& one) {
  return core::command_id(one.issue.run.uid, one.issue.run.attempt, "profile",
                          one.issue_key + "/" + std::to_string(one.episode));
}

std::vector<core::NotifiedIssue> firing(const core::Notification& notification) {
  std::vector<core::NotifiedIssue> out;
  for (const core::NotifiedIssue& one : notification.issues) {
    if (one.issue.status == core::IssueStatus::firing) out.push_back(one);
  }
  return out;
}

class ProfileTraining final : public core::Action {
 public:
  ProfileTraining(const ProfileConfig& cfg, const Environment& environment,
                  const IntegrationName& /*name*/)
      : cfg_(cfg),
        frame_(environment),
        ledger_(environment.profiles != nullptr ? environment.profiles : &own_) {}

  [[nodiscard]] core::Result<std::string> render(
      const core::Notification& notification) const override {
    core::ValueList out;
    for (const core::NotifiedIssue& one : firing(notification)) {
      out.push_back(core::ValueMap{{"command_id", id_of(one)},
                                   {"run", to_text(one.issue.run.uid)},
                                   {"attempt", std::uint64_t{one.issue.run.attempt}},
                                   {"stacks", cfg_.stacks},
                                   {"trace", cfg_.trace},
                                   {"issue_key", one.issue_key}});
    }
    return core::to_json(std::move(out));
  }

  core::AttemptOutcome execute(const core::Notification& notification, std::uint32_t /*attempt*/,
                               std::chrono::milliseconds /*budget*/) override {
    return issue_by_issue(firing(notification),
                          [&](const core::NotifiedIssue& one) { return ask(one); });
  }

 private:
  core::AttemptOutcome ask(const core::NotifiedIssue& one) {
    const core::RunRef& run = one.issue.run;
    const std::string name = "run " + to_text(run.uid);
    const auto current = frame_.current(run.uid);
    if (!current || current->ended) return declined("ended", name + " does not go on");
    if (current->attempt != run.attempt) {
      return declined("stale", name + " goes on as attempt " + std::to_string(current->attempt));
    }
    if (cfg_.trace > 0 && !current->step_seconds) {
      return held("pace_unknown", name + " has not told the time of a step yet");
    }
    core::Command command = command_for(one, *current);
    const auto answer = ledger_->reserve(command, cfg_.limits);
    if (answer != ProfileLedger::Answer::ask) return refused(answer, name, command);
    return frame_.write(
        command,
        "asked " + name + (cfg_.stacks ? " where its ranks stand" : "") +
            (cfg_.stacks && cfg_.trace > 0 ? " and" : "") +
            (cfg_.trace > 0 ? " for a trace of " + std::to_string(cfg_.trace) + " steps" : "") +
            " by " + command.command_id,
        [&] { ledger_->release(command); });
  }

  core::AttemptOutcome refused(ProfileLedger::Answer answer, const std::string& name,
                               const core::Command& command) const {
    switch (answer) {
      case ProfileLedger::Answer::too_soon:
        return declined("too_soon",
                        name + " was asked less than " + core::to_text(cfg_.limits.every) + " ago");
      case ProfileLedger::Answer::too_many:
        return declined("too_many",
                        name + " was asked " + std::to_string(cfg_.limits.most) + " times");
      default:
        return declined("already_requested", name + " was asked before by " + command.command_id);
    }
  }

  [[nodiscard]] core::Command command_for(const core::NotifiedIssue& one,
                                          const core::CurrentRun& current) const {
    const core::Issue& issue = one.issue;
    core::Command out;
    out.command_id = id_of(one);
    out.action = "profile";
    out.run = issue.run.uid;
    out.attempt = issue.run.attempt;
    out.issued_at = frame_.now();
    // Growing like those that people write; the ledger knows what the slot had.
    out.revision = static_cast<std::uint64_t>(std::max<std::int64_t>(
        1, core::nanoseconds(std::min(issue.starts_at, out.issued_at)) / 1'000'000));
    out.expires_at = out.issued_at + ProfileConfig::kExpires;
    out.requested_by = "router";
    out.reason = reason_of(one);
    core::ValueMap args{{"kind", cfg_.trace > 0 ? "trace" : "stacks"}};
    if (cfg_.stacks) args.emplace_back("tell", true);
    if (cfg_.trace > 0) {
      args.emplace_back(
          "from_step",
          TraceStart::of(std::max<std::int64_t>(0, current.step.value_or(0)), current.step_at,
                         current.step_seconds.value_or(1), out.issued_at));
      args.emplace_back("steps", cfg_.trace);
    }
    out.args = std::move(args);
    return out;
  }

  ProfileConfig cfg_;
  CommandFrame frame_;
  ProfileLedger own_;  // where nobody keeps one
  ProfileLedger* ledger_;
};

core::Result<std::unique_ptr<core::Action>> ProfileConfig::build(
    const Environment& environment, const IntegrationName& name,
    const CommonConfig& /*common*/) const {
  return make_command_action<ProfileTraining>(*this, environment, name);
}

std::shared_ptr<const ActionConfig> read_profile_training(config::Reader& in) {
  auto cfg = std::make_shared<ProfileConfig>();
  in.optional("stacks", cfg->stacks, "each rank tells where it stands, as the issue worker_place");
  in.optional("trace", cfg->trace, config::between<std::int64_t>(0, 10'000),
              "steps that all ranks trace by PyTorch's profiler; 0: none");
  in.optional("every", cfg->limits.every, config::at_least(Duration{}),
              "least time between two requests to one run");
  in.optional("most", cfg->limits.most, config::at_least<std::uint64_t>(1),
              "requests to one attempt of a run");
  if (!cfg->stacks && cfg->trace == 0)
    in.error("stacks", "neither stacks nor a trace: nothing to ask for");
  return cfg;
}

}  // namespace

ActionDescriptor profile_training() {
  CommonConfig defaults;
  defaults.send_resolved = false;
  defaults.max_age = std::chrono::minutes(5);  // what it would show later is something else
  return {"profile_training",
          "Asks the run where its ranks stand, and for a trace.",
          {.coalesce = false,
           .every_issue = true,
           .dedup = true,
           .stateful = false,
           .reads_issues = true},
          read_profile_training,
          defaults};
}

}  // namespace tocsin::actions
