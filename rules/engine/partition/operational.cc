#include "rules/engine/partition/operational.h"

#include <array>

#include "rules/contract/rule.h"
#include "rules/engine/partition/script_alert.h"

namespace tocsin::rules {
namespace {

using core::Severity;

constexpr std::array<OperationalRule, static_cast<std::size_t>(Operational::count)> kRules{{
    {"telemetry_gap", Severity::warning, true, false,
     "Look for dropped frames in the hook's statistics: a slow or unreachable broker, or a queue "
     "that is too small.",
     "2"},
    {"job_failed", Severity::error, false, true,
     "Look at the output of the process; the last steps before its end are in the evidence of what "
     "fired before."},
    {"job_lost", Severity::error, false, true,
     "Look whether the process or its machine is still there: kernel log (out of memory), the "
     "scheduler, the node."},
    {"run_unwatched", Severity::error, false, false,
     "No rule judges this data. Raise engine.max_runs, or look why an earlier launch still sends."},
    {"clock_skew", Severity::warning, false, false,
     "Set the machine's clock right (NTP): its times are not believed until then."},
    {"state_incomplete", Severity::error, false, false,
     "Open issues and windows of before are forgotten, rules start anew. Look at the log for what "
     "could not be read."},
    {"training_preflight", Severity::warning, false, false,
     "Such a part does not train, and nothing else will say so. Compare what the optimizer was "
     "given "
     "with the model's parameters, and look which of them the loss depends on."},
    {"worker_stands_still", Severity::info, false, false,
     "Compare where the workers of the run stand: those in a collective operation wait for the one "
     "that is somewhere else. A long evaluation or compilation is no fault: "
     "hook.report_progress(expect_next_in=...) promises it."},
    {"worker_place", Severity::info, false, false,
     "It is where the worker was at one moment, asked for by the issue that the evidence names. "
     "Compare the workers of the run."},
    {"script_alert", Severity::info, false, false,
     "The training script said this itself: hook.alert().", "1", ScriptAlert::kMaxOpen},
}};
static_assert(!kRules.back().name.empty(), "an issue without a row");

/// No parameters beyond the shared ones.
class OperationalProgram final : public Program {};

}  // namespace

std::span<const OperationalRule> operational_rules() noexcept { return kRules; }

std::span<const core::OwnIssue> own_issues() noexcept {
  static const auto kOwn = [] {
    std::array<core::OwnIssue, kRules.size()> out;
    for (std::size_t i = 0; i < kRules.size(); ++i) out[i] = {kRules[i].name, issue_labels()};
    return out;
  }();
  return kOwn;
}

RuleSettings operational_settings(const OperationalRule& rule) {
  RuleSettings out;
  out.name = rule.name;
  out.type = rule.name;
  out.version = rule.version;
  out.severity = rule.severity;
  out.params_hash = core::params_hash("{}");
  auto program = std::make_shared<OperationalProgram>();
  if (rule.max_open_units > 0) program->common.max_open_units = rule.max_open_units;
  out.program = std::move(program);
  return out;
}

}  // namespace tocsin::rules
