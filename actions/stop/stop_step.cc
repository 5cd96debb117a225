#include "actions/stop/stop_step.h"

#include <algorithm>
#include <cmath>

namespace tocsin::actions {

using core::Duration;
using core::WallTime;

namespace {

// From writing a command to the last rank's hearing of it: one long poll.
constexpr Duration kReach = std::chrono::seconds(1);
// How far a step that was reported is carried on to now.
constexpr Duration kLongestReport = std::chrono::minutes(1);
// A pace beyond these is no pace.
constexpr double kFastest = 1e-6;  // seconds per step
constexpr double kSlowest = 3600;
constexpr std::int64_t kLeast = 10;  // steps
// The first steps of a run are slow, and so is the pace that they tell: the next ones may be so
// many times faster. A step that is too far is late by seconds, one that is too near parts the
// ranks.
constexpr std::int64_t kYoung = 100;  // steps
constexpr double kFaster = 4;
// The first one is that of the first steps, which are slow.
constexpr std::uint32_t kPaces = 2;
// A run that trains has told its pace by then.
constexpr Duration kPaceComes = std::chrono::seconds(10);

// Seconds per step; 0: not known.
double pace_of(const core::CurrentRun& current) {
  const double each = current.step_seconds.value_or(0);
  return each >= kFastest && each <= kSlowest ? each : 0;
}

std::int64_t steps_in(Duration time, double pace) {
  if (pace == 0) return 0;
  return static_cast<std::int64_t>(std::ceil(std::chrono::duration<double>(time).count() / pace));
}

// Where the fastest rank is now, after `step` was reported at `at`.
std::int64_t carried_on(std::int64_t step, WallTime at, WallTime now, double pace) {
  return step + steps_in(std::clamp<Duration>(now - at, {}, kLongestReport), pace);
}

std::int64_t fastest(const core::CurrentRun& current, WallTime now) {
  if (!current.step) return 0;
  return carried_on(*current.step, current.step_at, now, pace_of(current));
}

CommonStep ahead_of(std::int64_t fastest, double pace, std::int64_t times) {
  const double careful = fastest < kYoung ? pace / kFaster : pace;
  const std::int64_t ahead = times * std::max(kLeast, steps_in(2 * kReach, careful));
  const double seconds = static_cast<double>(ahead) * pace;
  return {fastest + ahead,
          pace == 0 ? 2 * kReach * times
                    : std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds))};
}

}  // namespace

std::optional<CommonStep> common_step(const core::Issue& issue,
                                      const std::optional<core::CurrentRun>& current,
                                      WallTime now) {
  if (!current || current->world_size <= 1) return std::nullopt;
  const double pace = pace_of(*current);
  const bool train = !issue.mode || *issue.mode == core::Mode::train;
  if (!train && !current->step) return std::nullopt;
  std::int64_t known = fastest(*current, now);
  if (train && issue.step) known = std::max(known, carried_on(*issue.step, issue.time, now, pace));
  return ahead_of(known, pace, 1);
}

bool pace_to_come(const core::Issue& issue, const std::optional<core::CurrentRun>& current,
                  Duration waited) {
  const bool train = !issue.mode || *issue.mode == core::Mode::train;
  return current && current->world_size > 1 && train && current->paces < kPaces &&
         waited >= Duration{} && waited < kPaceComes;
}

CommonStep later_step(const core::CurrentRun& current, std::int64_t too_near, std::uint32_t times,
                      WallTime now) {
  return ahead_of(std::max(fastest(current, now), too_near), pace_of(current),
                  std::int64_t{1} << std::min<std::uint32_t>(times, 16));
}

}  // namespace tocsin::actions
