// The real clock. The only place, beside adapters, that asks the system what time it is.
#pragma once

#include "core/clock.h"

namespace tocsin::core {

class SystemClock final : public Clock {
 public:
  [[nodiscard]] WallTime now() const override {
    return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
  }
  [[nodiscard]] Duration monotonic() const override {
    return std::chrono::duration_cast<Duration>(
        std::chrono::steady_clock::now().time_since_epoch());
  }
};

}  // namespace tocsin::core
