// Time in the simulated world: moved by hand, both clocks; the wall clock may jump.
#pragma once

#include "core/clock.h"

namespace tocsin::simulation {

class SimulatedClock final : public core::Clock {
 public:
  [[nodiscard]] core::WallTime now() const override { return wall_; }
  [[nodiscard]] core::Duration monotonic() const override { return steady_; }

  void advance(core::Duration by) {
    wall_ += by;
    steady_ += by;
  }
  /// As an administrator or NTP sets the system clock.
  void jump(core::Duration by) { wall_ += by; }

 private:
  core::WallTime wall_{std::chrono::sys_days{std::chrono::January / 2 / 2026}};
  core::Duration steady_ = std::chrono::hours(1);
};

}  // namespace tocsin::simulation
