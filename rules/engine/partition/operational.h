// What the engine says of itself and of the jobs it follows, without a rule of the user's: a table
// of built-in rules that are always on. People are told of them like of any other issue.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "rules/rules.h"

namespace tocsin::rules {

enum class Operational : std::uint8_t {
  telemetry_gap,
  job_failed,
  job_lost,
  run_unwatched,
  clock_skew,
  state_incomplete,
  training_preflight,
  worker_stands_still,
  worker_place,
  script_alert,
  count,
};

struct OperationalRule {
  std::string_view name;
  core::Severity severity = core::Severity::warning;
  bool step_clock = false;    // its window is a step, not a time
  bool outlives_job = false;  // speaks of the end: stays open until the next attempt
  std::string_view recommendation;
  std::string_view version = "1";    // rises when its units or ids change
  std::uint32_t max_open_units = 0;  // 0: engine.max_open_units
};

/// In the order of Operational.
std::span<const OperationalRule> operational_rules() noexcept;
/// As an entry of the engine's list of rules.
RuleSettings operational_settings(const OperationalRule& rule);

}  // namespace tocsin::rules
