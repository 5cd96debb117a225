// The clock of a loop while functions of the library, and none of Python, carry its steps on.
#pragma once

#include <cstdint>

#include "collectors/hook/abi/step_arrows.h"
#include "collectors/hook/abi/step_lane.h"

namespace tocsin::hook {

/// What `StepClock` (python/tocsin/loop/steps.py) lends in the steps that are like most: one optimizer, training, nothing
/// captured, nothing on a device. Whoever looks at the clock in Python takes it back first. `owner` is null: it is not lent.
struct StepLease {
  const void* owner = nullptr;  // whose updates end the steps
  StepState state = StepState::fresh;
  std::int64_t number = 0;  // steps ended
  bool quiet = false;       // nothing is due at the present one
  bool updating = false;    // between the calls around an update

  /// What `event` makes of the present step; where it ends, the session is told.
  void take(StepEvent event, StepLane& lane, Session& session) {
    state = state_after(state, event);
    if (state != StepState::ends) return;
    state = StepState::fresh;
    ++number;
    quiet = lane.step_end(session, false, 1);
  }
};

}  // namespace tocsin::hook
