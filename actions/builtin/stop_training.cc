// Asks a run to stop: writes the fenced `stop` command, which the training loop obeys at its next
// step and the node agent enforces.
//
// Sends       one command per (run, attempt) to `commands`, slot <run uid>/stop.
// Retries     while the topic cannot be written, until the command would have expired.
// Idempotent  the command id is a hash of run and attempt: all issues of one attempt share it.
// Needs       armed: true; without it everything is decided and nothing is sent (dry run).
// Source      our own: routing-and-actions §6.

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>

#include "actions/descriptor.h"
#include "actions/local_process.h"
#include "actions/message.h"

namespace tocsin::actions {
namespace {

using core::Duration;
using core::WallTime;

struct LabelIs {
  std::string name;
  std::string value;
};

// name=value or name="value"
std::optional<LabelIs> parse_label(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) return std::nullopt;
  std::string_view value = text.substr(equals + 1);
  if (value.starts_with('~') || text[equals - 1] == '!') return std::nullopt;  // other matchers
  if (value.size() > 1 && value.front() == '"' && value.back() == '"') {
    value = value.substr(1, value.size() - 2);
  }
  return LabelIs{std::string(text.substr(0, equals)), std::string(value)};
}

struct Config final : ActionConfig {
  bool armed = false;
  std::string mode = "checkpoint_then_stop";
  Duration ack = std::chrono::seconds(30);
  Duration graceful = std::chrono::minutes(10);
  Duration total = std::chrono::minutes(15);
  Duration grace = std::chrono::seconds(60);
  bool allow_force = false;
  Duration expires = std::chrono::minutes(10);
  std::vector<std::string> allow;
  std::vector<std::string> deny;
  std::int64_t min_step = 0;
  std::uint64_t min_consecutive = 1;
  std::uint64_t max_count = 3;
  Duration max_per = std::chrono::minutes(10);

  [[nodiscard]] core::Result<std::unique_ptr<core::Action>> build(
      const Environment& environment, const IntegrationName& name,
      const CommonConfig& common) const override;
};

bool meets(const core::Issue& issue, const std::string& text) {
  const auto wanted = parse_label(text);
  if (!wanted) return false;
  const std::string& found = wanted->name == "job" && !issue.labels.has("job")
                                 ? issue.run.job
                                 : issue.labels.get(wanted->name);
  return found == wanted->value;
}

class StopTraining final : public core::Action {
 public:
  StopTraining(const Config& cfg, const Environment& environment)
      : cfg_(cfg),
        clock_(*environment.clock),
        send_(environment.send_command),
        current_attempt_(environment.current_attempt) {}

  [[nodiscard]] core::Result<std::string> render(
      const core::Notification& notification) const override {
    core::ValueList stops;
    for (const auto& notified : targets(notification)) {
      stops.push_back(core::ValueMap{
          {"command_id",
           core::command_id(notified.issue.run.uid, notified.issue.run.attempt, "stop")},
          {"run", to_text(notified.issue.run.uid)},
          {"attempt", std::uint64_t{notified.issue.run.attempt}},
          {"mode", cfg_.mode},
          {"dry_run", !cfg_.armed},
          {"issue_key", notified.issue_key}});
    }
    return core::to_json(std::move(stops));
  }

  core::Outcome execute(const core::Notification& notification, std::uint32_t /*attempt*/,
                        std::chrono::milliseconds /*budget*/) override {
    core::Outcome out;
    const auto all = targets(notification);
    if (all.empty()) return declined("not_firing", "no issue of the message is firing");
    std::string said;
    bool sent = false;
    for (const auto& notified : all) {
      const core::Outcome one = stop(notified);
      if (one.outcome != core::OutcomeClass::delivered) return one;
      sent = sent || !one.declined;
      if (out.code.empty() || !one.declined) out.code = one.code;
      said += (said.empty() ? "" : "; ") + one.detail;
      out.handles.insert(out.handles.end(), one.handles.begin(), one.handles.end());
    }
    out.declined = !sent;
    out.detail = said;
    return out;
  }

 private:
  static core::Outcome declined(std::string code, std::string detail) {
    core::Outcome out;
    out.declined = true;
    out.code = std::move(code);
    out.detail = std::move(detail);
    return out;
  }

  // The first firing issue of each (run, attempt): the most severe one.
  static std::vector<core::NotifiedIssue> targets(const core::Notification& notification) {
    std::vector<core::NotifiedIssue> out;
    for (const auto& notified : notification.issues) {
      if (notified.issue.status != core::IssueStatus::firing) continue;
      const bool known = std::any_of(out.begin(), out.end(), [&](const auto& other) {
        return other.issue.run.uid == notified.issue.run.uid &&
               other.issue.run.attempt == notified.issue.run.attempt;
      });
      if (!known) out.push_back(notified);
    }
    return out;
  }

  core::Outcome stop(const core::NotifiedIssue& notified) {
    const core::Issue& issue = notified.issue;
    const std::string who = (issue.run.job.empty() ? "run " : issue.run.job + ", run ") +
                            to_text(issue.run.uid) + " attempt " +
                            std::to_string(issue.run.attempt);
    if (const std::string why = refusal(issue); !why.empty()) {
      return declined("refused", who + " is not stopped: " + why);
    }
    const core::Command command = command_for(notified);
    if (!cfg_.armed) {
      return declined("dry_run", "dry run, not armed: would ask " + who + " to " + cfg_.mode +
                                     " (" + command.command_id + ") because " +
                                     command.reason.summary);
    }
    core::Outcome out;
    out.handles = {{"command_id", command.command_id}};
    const std::lock_guard lock(mutex_);
    const WallTime now = command.issued_at;
    std::erase_if(sent_, [&](const auto& one) { return now - one.second > keep(); });
    if (sent_.contains(command.command_id)) {
      out.code = "already_requested";
      out.detail = who + " was asked before by " + command.command_id;
      return out;
    }
    const auto recent = std::count_if(sent_.begin(), sent_.end(), [&](const auto& one) {
      return now - one.second <= cfg_.max_per;
    });
    if (static_cast<std::uint64_t>(recent) >= cfg_.max_count) {
      return declined("refused", who + " is not stopped: max_stops, " + std::to_string(recent) +
                                     " in the last " + core::to_text(cfg_.max_per));
    }
    if (const auto written = send_(command); !written) {
      out.outcome = written.error().retryable() ? core::OutcomeClass::transient
                                                : core::OutcomeClass::configuration;
      out.code = to_string(written.error().code);
      out.detail = written.error().message;
      return out;
    }
    sent_.emplace(command.command_id, now);
    out.code = "requested";
    out.detail =
        "asked " + who + " to " + cfg_.mode + " by " + command.command_id +
        (process_fence(issue.run.ref) ? "" : "; cooperative only, the process is not known");
    return out;
  }

  [[nodiscard]] Duration keep() const { return std::max(cfg_.max_per, 2 * cfg_.total); }

  // Why this run must not be stopped; empty: it may (routing-and-actions §6.3).
  [[nodiscard]] std::string refusal(const core::Issue& issue) const {
    if (issue.run.uid.nil() || issue.run.attempt == 0) return "the issue names no run and attempt";
    if (issue.shadow) return "the rule is in shadow";
    if (issue.labels.get("protected") == "true") return "it is protected";
    for (const std::string& text : cfg_.deny) {
      if (meets(issue, text)) return "deny: " + text;
    }
    for (const std::string& text : cfg_.allow) {
      if (!meets(issue, text)) return "allow: " + text + " is not met";
    }
    if (issue.step.value_or(0) < cfg_.min_step) {
      return "step " + std::to_string(issue.step.value_or(0)) + " is below min_step " +
             std::to_string(cfg_.min_step);
    }
    if (issue.evidence.occurrences < cfg_.min_consecutive) {
      return "seen " + std::to_string(issue.evidence.occurrences) + " times, min_consecutive is " +
             std::to_string(cfg_.min_consecutive);
    }
    const auto now = current_attempt_ ? current_attempt_(issue.run.uid) : std::nullopt;
    if (now && *now != issue.run.attempt) {
      return "stale, attempt " + std::to_string(*now) + " is running";
    }
    return {};
  }

  [[nodiscard]] core::Command command_for(const core::NotifiedIssue& notified) const {
    const core::Issue& issue = notified.issue;
    core::Command out;
    out.command_id = core::command_id(issue.run.uid, issue.run.attempt, "stop");
    out.action = "stop";
    out.run = issue.run.uid;
    out.attempt = issue.run.attempt;
    out.revision = issue.run.attempt;  // grows in the slot, and is the same when sent again
    out.issued_at = clock_.now();
    out.expires_at = out.issued_at + cfg_.expires;
    out.requested_by = "router";
    out.reason = {issue.rule, notified.issue_key, notified.episode, issue.event_id,
                  issue.summary.empty() ? evidence_sentence(issue) : issue.summary};
    core::ValueMap fence{{"platform", issue.run.platform}};
    if (const auto* known = std::get_if<core::ValueMap>(&issue.run.ref.storage())) {
      fence.insert(fence.end(), known->begin(), known->end());
    }
    out.args =
        core::ValueMap{{"mode", cfg_.mode},
                       {"deadline", core::ValueMap{{"ack", core::to_text(cfg_.ack)},
                                                   {"graceful", core::to_text(cfg_.graceful)},
                                                   {"total", core::to_text(cfg_.total)}}},
                       {"grace", core::to_text(cfg_.grace)},
                       {"allow_force", cfg_.allow_force},
                       {"fence", std::move(fence)}};
    return out;
  }

  Config cfg_;
  core::Clock& clock_;
  std::function<core::Status(const core::Command&)> send_;
  std::function<std::optional<std::uint32_t>(const core::RunUid&)> current_attempt_;
  std::mutex mutex_;                      // guards sent_
  std::map<std::string, WallTime> sent_;  // command id → when, for max_stops
};

core::Result<std::unique_ptr<core::Action>> Config::build(const Environment& environment,
                                                          const IntegrationName& name,
                                                          const CommonConfig& /*common*/) const {
  if (!environment.send_command) {
    return core::Error{core::Code::failed_precondition,
                       name.id + ": no commands topic to write to"};
  }
  return std::unique_ptr<core::Action>(std::make_unique<StopTraining>(*this, environment));
}

void check(config::Reader& in, const Config& cfg) {
  for (const auto& [key, texts] : {std::pair{"allow", &cfg.allow}, std::pair{"deny", &cfg.deny}}) {
    for (const std::string& text : *texts) {
      if (!parse_label(text)) in.error(key, "\"" + text + "\": expected label=value");
    }
  }
  if (cfg.graceful > cfg.total) in.error("deadline", "graceful is longer than total");
  if (cfg.ack > cfg.graceful) in.error("deadline", "ack is longer than graceful");
}

std::shared_ptr<const ActionConfig> read_stop_training(config::Reader& in) {
  auto cfg = std::make_shared<Config>();
  in.optional("armed", cfg->armed, "false: dry run, everything is decided and nothing is sent");
  in.optional("mode", cfg->mode, config::one_of({"stop", "checkpoint_then_stop", "pause"}),
              "what the training loop is asked to do");
  in.section("deadline", "from the command's issue", [&](config::Reader& deadline) {
    deadline.optional("ack", cfg->ack, config::positive(),
                      "the loop has accepted, else the process gets SIGTERM");
    deadline.optional("graceful", cfg->graceful, config::positive(),
                      "checkpoint and end, else the process gets SIGTERM");
    deadline.optional("total", cfg->total, config::positive(), "then the stop has failed");
  });
  in.optional("grace", cfg->grace, config::positive(), "from SIGTERM to SIGKILL");
  in.optional("allow_force", cfg->allow_force, "SIGKILL is allowed");
  in.optional("expires", cfg->expires, config::positive(),
              "a command that nobody has taken by then is void");
  in.optional("allow", cfg->allow, "label=value; all must hold, else no stop");
  in.optional("deny", cfg->deny, "label=value; if any holds, no stop");
  in.optional("min_step", cfg->min_step, config::at_least<std::int64_t>(0), "no stop before it");
  in.optional("min_consecutive", cfg->min_consecutive, config::at_least<std::uint64_t>(1),
              "how often the rule must have seen it");
  in.section("max_stops", "blast radius of this action", [&](config::Reader& limit) {
    limit.optional("count", cfg->max_count, config::at_least<std::uint64_t>(1), "runs …");
    limit.optional("per", cfg->max_per, config::positive(), "… in this time");
  });
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
          {false, false, true},
          read_stop_training,
          defaults};
}

}  // namespace tocsin::actions
