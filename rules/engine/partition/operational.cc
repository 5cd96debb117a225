#include "rules/engine/partition/operational.h"

#include <array>

#include "rules/contract/rule.h"
#include "rules/engine/partition/script_alert.h"

namespace tocsin::rules {
namespace {

using core::Severity;

constexpr std::array<OperationalRule, static_cast<std::size_t>(Operational::count)> kRules{{
    {"telemetry_gap", Severity::warning, true, false,
     "Check the dropped frames in the hook's statistics. Most probable first: a slow or "
     "unreachable broker; a queue that is too small.",
     "2"},
    {"job_failed", Severity::error, false, true,
     "Read the output of the process. The last steps before its end are in the evidence of issues "
     "that fired before."},
    {"job_lost", Severity::error, false, true,
     "Check whether the process and its machine still exist: kernel log (out of memory), "
     "scheduler, node."},
    {"run_unwatched", Severity::error, false, false,
     "No rule judges this data. Raise engine.max_runs, or find out why an earlier launch still "
     "sends."},
    {"clock_skew", Severity::warning, false, false,
     "Correct the machine's clock (NTP). Until then its times are ignored."},
    {"state_incomplete", Severity::error, false, false,
     "Earlier issues and windows are lost, and rules start from nothing. The log says what could "
     "not be read."},
    {"training_preflight", Severity::warning, false, false,
     "Such a part does not train as intended, and no error is raised. Compare the optimizer's "
     "parameters with the model's, and check which of them the loss depends on."},
    {"worker_stands_still", Severity::info, false, false,
     "Compare the places of the workers: those in a collective operation wait for the one that is "
     "elsewhere. If a long evaluation or compilation is intended, announce it: "
     "hook.report_progress(expect_next_in=...)."},
    {"worker_place", Severity::info, false, false,
     "This is where the worker was at one moment. The issue named in the evidence asked for it. "
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
