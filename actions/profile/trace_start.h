// From which step on all ranks of a run can trace. Internal to actions.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "actions/contract/descriptor.h"
#include "core/time.h"

namespace tocsin::actions {

/// So far ahead that each rank hears of it before. The first steps of a run are slow, and so is the
/// pace that they tell.
struct TraceStart {
  static constexpr double kAhead = 3;           // seconds
  static constexpr double kLongestReport = 60;  // that a step is carried on to now
  static constexpr std::int64_t kLeast = 10;    // steps
  static constexpr std::int64_t kMost = 100'000;
  static constexpr std::int64_t kYoung = 100;
  static constexpr double kFaster = 4;

  /// `told`: the newest step that is known of any rank, at `at`. `times`: so much further ahead.
  static std::int64_t of(std::int64_t told, core::WallTime at, double step_seconds,
                         core::WallTime now, double times = 1) {
    const double pace = std::max(step_seconds, 1e-6);
    const double since = std::chrono::duration<double>(now - at).count();
    const double passed = std::clamp(since, 0.0, kLongestReport) / pace;
    const double ahead =
        std::min(kAhead * times / pace * (told < kYoung ? kFaster : 1), static_cast<double>(kMost));
    return told + static_cast<std::int64_t>(passed) +
           std::clamp(static_cast<std::int64_t>(ahead), kLeast, kMost);
  }
};

}  // namespace tocsin::actions
