// A wall clock for decisions: starts at the system's, moves with the steady clock, and never goes
// back. A jump of the system clock in either direction makes nobody look silent, late or due; the
// difference is worked off at one part in a hundred.
#pragma once

#include "app/loop/stage.h"
#include "core/clock.h"

namespace tocsin::app {

/// Lives on one thread; `clock` outlives it.
class AnchoredClock {
 public:
  explicit AnchoredClock(const core::Clock& clock)
      : clock_(clock), wall_(clock.now()), steady_(clock.monotonic()) {}

  [[nodiscard]] Instant now() {
    const core::Duration steady = clock_.monotonic();
    const core::Duration passed = steady - steady_;
    const core::Duration slew = passed / 100;
    const core::Duration off = clock_.now() - (wall_ + passed);
    wall_ += passed + (off > slew ? slew : off < -slew ? -slew : off);
    steady_ = steady;
    return {wall_, steady};
  }
  [[nodiscard]] core::Duration steady() const { return clock_.monotonic(); }

 private:
  const core::Clock& clock_;
  core::WallTime wall_;
  core::Duration steady_;
};

}  // namespace tocsin::app
