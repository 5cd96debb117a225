// Asks a running job to change one named number, such as its learning rate, because an issue was
// found. The training script has opted in: hook.on_command(name, function, bounds).
//
// Sends       one command per issue and episode to `commands`, slot <run uid>/adjust/<name>.
// Retries     while the topic cannot be written, or a run of several ranks has not told its pace,
//             until max_age.
// Idempotent  command id and revision are those of the episode: a hook takes them once.
// Fenced      by attempt and launch. Several ranks apply it after the same step.
// Needs       a hook whose script registered the name; else the hook answers `not_registered`.
// Source      our own: docs/actions/adjust.md.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <utility>

#include "actions/contract/descriptor.h"
#include "actions/profile/trace_start.h"
#include "actions/steer/adjust_told.h"
#include "actions/steer/steering_frame.h"

namespace tocsin::actions {
namespace {

using core::Duration;

struct AdjustSettings {
  std::string name;
  std::vector<double> values;  // in the order in which they are sent
  std::optional<std::pair<double, double>> bounds;
  SteeringLimits limits;
  Duration wait = std::chrono::minutes(1);
  bool tell = true;
};

struct AdjustConfig final : ActionConfig {
  AdjustSettings settings;

  [[nodiscard]] core::Result<std::unique_ptr<core::Action>> build(
      const Environment& environment, const IntegrationName& name,
      const CommonConfig& common) const override;
  [[nodiscard]] std::vector<std::string> intents() const override;
};

std::string adjusted_number_text(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", value);
  return text.data();
}

std::string adjustment_text(const std::string& name, double value) {
  return name + " = " + adjusted_number_text(value);
}

/// A whole number comes back from the topic as one.
std::optional<double> given_number(const core::Value& value) {
  if (const auto* real = core::as<double>(value)) return *real;
  if (const auto* whole = core::as<std::int64_t>(value)) return static_cast<double>(*whole);
  return std::nullopt;
}

std::string values_text(const AdjustSettings& cfg) {
  std::string out;
  for (const double value : cfg.values)
    out += (out.empty() ? "" : ", then ") + adjusted_number_text(value);
  return out;
}

std::vector<std::string> AdjustConfig::intents() const {
  return {"sets " + settings.name + " to " + values_text(settings) +
          " in runs whose script takes hook.on_command(\"" + settings.name + "\")"};
}

class Adjust final : public core::Action {
 public:
  Adjust(const AdjustConfig& cfg, const Environment& environment, const IntegrationName& /*name*/)
      : cfg_(cfg.settings),
        cluster_(environment.cluster),
        steering_(environment, "adjust/" + cfg_.name, cfg_.limits, cfg_.wait) {}

  [[nodiscard]] core::Result<std::string> render(
      const core::Notification& notification) const override {
    core::ValueList out;
    for (const core::NotifiedIssue& one : SteeringFrame::targets(notification)) {
      core::ValueList values(cfg_.values.begin(), cfg_.values.end());
      out.push_back(core::ValueMap{{"command_id", steering_.id_of(one)},
                                   {"run", to_text(one.issue.run.uid)},
                                   {"attempt", std::uint64_t{one.issue.run.attempt}},
                                   {"name", cfg_.name},
                                   {"values", std::move(values)},
                                   {"issue_key", one.issue_key}});
    }
    return core::to_json(std::move(out));
  }

  core::AttemptOutcome execute(const core::Notification& notification, std::uint32_t /*attempt*/,
                               std::chrono::milliseconds /*budget*/) override {
    const auto compose = [this](const core::NotifiedIssue& one, const core::CurrentRun& current) {
      return command_for(one, current);
    };
    const auto tell = [this](const core::NotifiedIssue& one, const core::Command& command,
                             const SteeringResult& result,
                             core::AttemptOutcome& out) { return say(one, command, result, out); };
    return steering_.carry_out(notification, compose, tell);
  }

 private:
  SteeringFrame::Composed command_for(const core::NotifiedIssue& one,
                                      const core::CurrentRun& current) const {
    const bool several = current.world_size > 1;
    if (several && !current.step_seconds) {
      return held("pace_unknown", "run " + to_text(one.issue.run.uid) +
                                      " has several ranks and has not told the time of a step yet");
    }
    core::Command out = steering_.begin(one, current);
    // Each request takes the next value; the ledger refuses what is beyond the last.
    const std::uint64_t before = steering_.asked(one);
    const double value = cfg_.values[std::min<std::size_t>(before, cfg_.values.size() - 1)];
    core::ValueMap args{{"name", cfg_.name}, {"value", value}};
    if (cfg_.bounds) {
      args.emplace_back("bounds", core::ValueList{cfg_.bounds->first, cfg_.bounds->second});
    }
    if (several) {
      args.emplace_back(
          "not_before_step",
          TraceStart::of(std::max<std::int64_t>(0, current.step.value_or(0)), current.step_at,
                         current.step_seconds.value_or(1), out.issued_at));
    }
    out.args = std::move(args);
    return out;
  }

  void say(const core::NotifiedIssue& one, const core::Command& command,
           const SteeringResult& result, core::AttemptOutcome& out) const {
    const core::Value* value = core::find(command.args, "value");
    const std::string what =
        adjustment_text(cfg_.name, value == nullptr ? 0 : given_number(*value).value_or(0));
    out.detail = what + ": " + out.detail;
    if (!cfg_.tell) return;
    const bool applied = result.state == SteeringResult::State::applied;
    out.issues.push_back(
        adjust_told(one, command, applied, what, result.words, cluster_, steering_.now()));
  }

  AdjustSettings cfg_;
  std::string cluster_;
  SteeringFrame steering_;
};

core::Result<std::unique_ptr<core::Action>> AdjustConfig::build(
    const Environment& environment, const IntegrationName& name,
    const CommonConfig& /*common*/) const {
  return make_command_action<Adjust>(*this, environment, name);
}

/// Numbers of a list, or one; nullopt: something else stands there.
std::optional<std::vector<double>> given_numbers(const core::Value& value) {
  std::vector<double> out;
  const auto* list = core::as<core::ValueList>(value);
  for (const core::Value& one : list != nullptr ? *list : core::ValueList{value}) {
    const auto number = given_number(one);
    if (!number || !std::isfinite(*number)) return std::nullopt;
    out.push_back(*number);
  }
  return out;
}

void read_values(config::Reader& in, AdjustSettings& cfg) {
  core::Value value;
  // 1e-3 without a point is a text to readers of YAML 1.1.
  in.any("value", value,
         "required: the number to set; a list: the first request of an attempt sets the first, the "
         "next one the second",
         R"({"anyOf":[{"type":"number"},{"type":"string","pattern":"^[-+]?[0-9]+e[-+]?[0-9]+$"},)"
         R"({"type":"array","items":{"type":["number","string"]},"minItems":1,"maxItems":32}]})");
  in.exactly_one_of({"value"});
  if (in.describing() || !in.has("value")) return;
  const auto numbers = given_numbers(value);
  if (!numbers || numbers->empty() || numbers->size() > SteeringLedger::kMostAsked) {
    in.error("value", "expected a number, or a list of 1 … 32 numbers");
    return;
  }
  cfg.values = *numbers;
}

void read_value_bounds(config::Reader& in, AdjustSettings& cfg) {
  core::Value value;
  in.any("bounds", value,
         "[low, high]: the hook refuses a value outside, whatever the script allows",
         R"({"type":"array","items":{"type":"number"},"minItems":2,"maxItems":2})");
  if (in.describing() || !in.has("bounds")) return;
  const auto numbers = given_numbers(value);
  if (!numbers || numbers->size() != 2 || numbers->front() > numbers->back()) {
    in.error("bounds", "expected [low, high]");
    return;
  }
  cfg.bounds = std::pair(numbers->front(), numbers->back());
  for (const double one : cfg.values) {
    if (one >= cfg.bounds->first && one <= cfg.bounds->second) continue;
    in.error("value", adjusted_number_text(one) + " is outside of bounds [" +
                          adjusted_number_text(cfg.bounds->first) + ", " +
                          adjusted_number_text(cfg.bounds->second) + "]");
  }
}

config::Check<std::string> adjustment_name() {
  config::Check<std::string> out;
  out.ok = [](const std::string& name) {
    constexpr std::size_t kLongest = 100;
    return !name.empty() && name.size() <= kLongest &&
           std::all_of(name.begin(), name.end(), [](char c) {
             return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '_' || c == '-' || c == '.';
           });
  };
  out.expected = "1 … 100 letters, digits, _, - or .";
  return out;
}

std::shared_ptr<const ActionConfig> read_adjust(config::Reader& in) {
  auto cfg = std::make_shared<AdjustConfig>();
  AdjustSettings& own = cfg->settings;
  in.required("name", own.name, adjustment_name(),
              "what to set, as the script registered it: hook.on_command(name, …)");
  read_values(in, own);
  read_value_bounds(in, own);
  in.optional("every", own.limits.every, config::at_least(Duration{}),
              "least time between two requests to one run");
  in.optional("wait", own.wait,
              config::between<Duration>(std::chrono::seconds(1), std::chrono::minutes(2)),
              "how long answers of ranks are waited for; later ones refuse");
  in.optional("tell", own.tell,
              "tell people of the answer, as the issue adjusted or adjust_failed");
  own.limits.most = std::max<std::size_t>(1, own.values.size());
  return cfg;
}

}  // namespace

ActionDescriptor adjust() {
  CommonConfig defaults;
  defaults.send_resolved = false;
  defaults.max_age = std::chrono::minutes(5);  // what would help later is something else
  return {"adjust",
          "Asks the run to change a number that its script has registered.",
          {.coalesce = false,
           .every_issue = true,
           .dedup = true,
           .stateful = false,
           .reads_issues = true},
          read_adjust,
          defaults};
}

}  // namespace tocsin::actions
