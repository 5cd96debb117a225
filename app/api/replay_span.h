// Which telemetry a replay of one run reads, and how much of it was read.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "app/recordings/recording.h"
#include "core/time.h"

namespace tocsin::app {

class ReplaySpan {
 public:
  /// Clocks differ, and a run sends before anybody has noted its start.
  static constexpr core::Duration kBeforeRun = std::chrono::minutes{10};

  /// `began`: of the first attempt; nullopt: nobody knows, so the topic is read from its beginning. `heard`: the newest that is known of
  /// the run. `now`: what comes later is not read.
  ReplaySpan(std::optional<core::WallTime> began, core::WallTime heard, core::WallTime now)
      : began_(began), heard_(heard) {
    if (began) span_.from.time = *began - kBeforeRun;
    span_.to.time = now;
  }

  [[nodiscard]] const Span& span() const noexcept { return span_; }
  /// From 0 to 0.99; `newest`: of what was read of the run.
  [[nodiscard]] double done(core::WallTime newest) const {
    if (!began_ || heard_ <= *began_) return 0;
    const std::chrono::duration<double> read = newest - *began_;
    const std::chrono::duration<double> all = heard_ - *began_;
    return std::clamp(read / all, 0.0, 0.99);
  }

 private:
  std::optional<core::WallTime> began_;
  core::WallTime heard_;
  Span span_;
};

}  // namespace tocsin::app
