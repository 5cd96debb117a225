// Port: what time it is. Only app and adapters hold one; decisions get times as arguments.
#pragma once

#include "core/time.h"

namespace tocsin::core {

class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual WallTime now() const = 0;        // UTC, may jump
  [[nodiscard]] virtual Duration monotonic() const = 0;  // never goes back
};

}  // namespace tocsin::core
