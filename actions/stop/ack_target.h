// Whether an ack answers this command, or comes from another attempt or launch of the run (or from
// another run). Pure; internal to actions.
#pragma once

#include "core/command.h"

namespace tocsin::actions {

/// A run id outlives launches, and a process of an earlier or later one may see the command too. What
/// it says is nothing about the launch that was asked. Told apart by the run, by the node where the
/// command names a launch, by the moment at which the client opened, and by the attempt: the number
/// that a process states is at most the engine's, which counts on where it is too small; numbers made
/// of the start time differ by seconds within a launch.
bool answers(const core::Ack& ack, const core::Command& command);

}  // namespace tocsin::actions
