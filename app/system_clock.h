// The real clock. The only place, beside adapters, that asks the system what time it is.
#pragma once

#include "core/clock.h"

namespace tocsin::app {

class SystemClock final : public core::Clock {
 public:
  [[nodiscard]] core::WallTime now() const override {
    return std::chrono::time_point_cast<core::Duration>(std::chrono::system_clock::now());
  }
  [[nodiscard]] core::Duration monotonic() const override {
    return std::chrono::duration_cast<core::Duration>(
        std::chrono::steady_clock::now().time_since_epoch());
  }
};

}  // namespace tocsin::app
