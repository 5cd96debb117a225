// After which step the ranks of a run leave together. Internal to actions.
#pragma once

#include <cstdint>
#include <optional>

#include "actions/contract/descriptor.h"
#include "core/issue.h"
#include "core/time.h"

namespace tocsin::actions {

struct CommonStep {
  std::int64_t step = 0;  // a `train` step
  core::Duration wait{};  // until the ranks are there, about
};

/// All ranks leave after the same step, without a collective of ours: one that the fastest has not
/// reached when the slowest hears of it (docs/actions/stop_training.md). nullopt: at once, since
/// there is one rank, or nothing in the run trains.
std::optional<CommonStep> common_step(const core::Issue& issue,
                                      const std::optional<core::CurrentRun>& current,
                                      core::WallTime now);

/// Whether common_step() would have to guess: of a run this young too little is known of the pace,
/// and its next heartbeat tells more. `waited`: since the stop was decided. (Not since the issue's time:
/// that is the trainer's clock, and one that runs ahead would hold the stop until ours is there.)
bool pace_to_come(const core::Issue& issue, const std::optional<core::CurrentRun>& current,
                  core::Duration waited);

/// The same for a stop that did not reach every rank in time: from where the run is now, and twice
/// as far ahead for each time that it was too near.
CommonStep later_step(const core::CurrentRun& current, std::int64_t too_near, std::uint32_t times,
                      core::WallTime now);

}  // namespace tocsin::actions
