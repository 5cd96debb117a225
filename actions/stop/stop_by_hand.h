// The stop that a person asks for (docs/stopping.md): the same command, slot and fence as a rule's.
// No clock, no I/O.
#pragma once

#include <optional>
#include <string>

#include "actions/contract/descriptor.h"
#include "actions/stop/stop_command.h"
#include "core/command.h"
#include "core/issue.h"
#include "core/time.h"

namespace tocsin::actions {

/// What stands in the slot of a run, and how it was answered.
struct HeldStop {
  core::Command command;
  bool accepted = false;  // a rank obeys
  bool refused = false;   // a rank has refused its newest revision for good
};

struct StopByHand {
  enum class Leave {
    send,           // `command` is to be written
    under_way,      // `command` is what stands there: it asks for the same, and is still in force
    newer_attempt,  // the slot belongs to an attempt that the registry does not have yet
  };
  Leave leave = Leave::send;
  core::Command command;
};

/// A stop of the attempt that `run` names, which is the newest that is known. One that was asked for
/// before, by a rule or a person, is written again (revision + 1) when it has come to nothing or
/// asked for less: another mode, no SIGKILL. Guards and max_stops are for rules: a person decides.
StopByHand stop_by_hand(const StopTerms& terms, const core::RunRef& run,
                        const core::CurrentRun& current, const std::optional<HeldStop>& held,
                        core::WallTime now);

/// The issue by which others hear of it: severity info, over when the run is.
core::Issue stopped_by_hand_issue(const core::Command& command, const core::JobEvent& run,
                                  const std::string& cluster);

}  // namespace tocsin::actions
