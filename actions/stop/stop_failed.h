// The issue by which people hear that a run which should have stopped has not
// (docs/actions/stop_training.md): built in, told by default like any other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/issue.h"
#include "core/labels.h"
#include "core/time.h"

namespace tocsin::actions {

/// Values of the label `reason`.
enum class StopFailure {
  failed,     // asked and signalled, still running
  refused,    // by a guard or by the run
  expired,    // nobody took it in time
  stale,      // the attempt it was meant for is not the one that runs
  held_back,  // max_stops
};
std::string_view to_string(StopFailure why) noexcept;

struct FailedStop {
  core::RunRef run;
  core::Labels labels;  // of the run or of the issue; what names a rule's unit is left out
  std::string cluster = "default";
  StopFailure why = StopFailure::failed;
  std::string detail;  // one sentence: what happened
  std::string command_id;
  std::string caused_by_rule;
  core::WallTime at{};
};

/// Without what says which part of a run a rule looked at: a stop is about the whole.
core::Labels without_unit(const core::Labels& labels);

/// Severity error; the same stop failing for the same reason has the same event id, whoever says
/// it. Stands until the run ends; one about an attempt that no longer runs times out by itself.
core::Issue stop_failed_issue(const FailedStop& stop);

}  // namespace tocsin::actions
