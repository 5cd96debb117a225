#include "actions/stop_step.h"

#include <algorithm>
#include <cmath>

namespace tocsin::actions {

using core::Duration;

namespace {

// From writing a command to the last rank's hearing of it: one long poll.
constexpr Duration kReach = std::chrono::seconds(1);
// How far an issue's step is carried on to now.
constexpr Duration kLongestReport = std::chrono::minutes(1);
// A pace beyond these is no pace.
constexpr double kFastest = 1e-6;  // seconds per step
constexpr double kSlowest = 3600;

}  // namespace

std::optional<CommonStep> common_step(const core::Issue& issue,
                                      const std::optional<CurrentRun>& current,
                                      core::WallTime now) {
  if (!current || current->world_size <= 1) return std::nullopt;
  const double each = current->step_seconds.value_or(0);
  if (!(each >= kFastest && each <= kSlowest)) return std::nullopt;
  const bool train = !issue.mode || *issue.mode == core::Mode::train;
  const std::int64_t known =
      std::max(current->step.value_or(0), train ? issue.step.value_or(0) : 0);
  if (known <= 0) return std::nullopt;
  const auto steps_in = [&](Duration time) {
    return static_cast<std::int64_t>(std::ceil(std::chrono::duration<double>(time).count() / each));
  };
  const Duration since = std::clamp<Duration>(now - issue.time, {}, kLongestReport);
  const std::int64_t ahead = std::max<std::int64_t>(10, steps_in(2 * kReach));
  return CommonStep{known + steps_in(since) + ahead,
                    std::chrono::duration_cast<Duration>(
                        std::chrono::duration<double>(static_cast<double>(ahead) * each))};
}

}  // namespace tocsin::actions
