// Growing waits between tries, until one succeeds.
#pragma once

#include <algorithm>

#include "core/time.h"

namespace tocsin::app {

struct Backoff {
  static constexpr core::Duration kFirst = std::chrono::milliseconds(50);
  static constexpr core::Duration kMost = std::chrono::seconds(5);

  core::Duration until{};  // steady
  core::Duration step{};   // 0: nothing has failed

  void grow(core::Duration now) {
    step = std::min(std::max(step * 2, kFirst), kMost);
    until = now + step;
  }
  [[nodiscard]] bool waits(core::Duration now) const { return step.count() != 0 && now < until; }
  [[nodiscard]] bool failing() const { return step.count() != 0; }
};

}  // namespace tocsin::app
