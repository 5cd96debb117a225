// The clock of a loop while functions of the library, and none of Python, carry its steps on.
#pragma once

#include <cstdint>

#include "collectors/hook/abi/step_lane.h"

namespace tocsin::hook {

/// What `StepClock` (python/tocsin/loop/steps.py) lends in the steps that are like most: one optimizer, training, nothing
/// captured, nothing on a device. Whoever looks at the clock in Python takes it back first. `owner` is null: it is not lent.
struct StepLease {
  enum State : long { fresh, logged, held };

  const void* owner = nullptr;  // whose updates end the steps
  State state = fresh;
  std::int64_t number = 0;  // steps ended
  bool quiet = false;       // nothing is due at the present one
  bool updating = false;    // between the calls around an update

  void end_step(StepLane& lane, Session& session) {
    state = fresh;
    ++number;
    quiet = lane.step_end(session, false, 1);
  }
  void log(StepLane& lane, Session& session) {
    if (state == held) {
      end_step(lane, session);
    } else {
      state = logged;
    }
  }
  void end_update(StepLane& lane, Session& session) {
    updating = false;
    if (state == logged) {
      end_step(lane, session);
    } else {
      state = held;
    }
  }
};

}  // namespace tocsin::hook
