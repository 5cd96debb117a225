// The command that asks a run to stop (docs/actions/stop_training.md), whoever writes it.
#pragma once

#include <optional>
#include <string>

#include "actions/contract/descriptor.h"
#include "core/command.h"
#include "core/issue.h"
#include "core/time.h"

namespace tocsin::actions {

/// How a run is to be stopped.
struct StopTerms {
  std::string mode = "checkpoint_then_stop";           // stop | checkpoint_then_stop | pause
  core::Duration ack = std::chrono::seconds(30);       // accepted by then, else SIGTERM
  core::Duration graceful = std::chrono::minutes(10);  // ended by then, else SIGTERM
  core::Duration total = std::chrono::minutes(15);     // then it has failed
  core::Duration grace = std::chrono::seconds(60);     // from SIGTERM to SIGKILL
  bool allow_force = false;                            // SIGKILL is allowed
  core::Duration expires = std::chrono::minutes(10);   // nobody has taken it by then: void
};

/// As a map with mode, deadline{ack, graceful, total}, grace, allow_force and expires; what is missing
/// there has its default.
core::Value terms_value(const StopTerms& terms);
StopTerms terms_from(const core::Value& value);

/// The fenced command to the run and attempt of `about`: its launch is that of `current`, its fence
/// the process that `about` names, its `not_before_step` the one after which all ranks leave.
/// Revision: the attempt; who keeps the slot raises it. Who asks and why is for the caller to say.
core::Command stop_command(const StopTerms& terms, const core::Issue& about,
                           const std::optional<core::CurrentRun>& current, core::WallTime now);

}  // namespace tocsin::actions
