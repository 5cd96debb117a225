// Times: wall time as UTC nanoseconds, durations as std::chrono, and their texts.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tocsin::core {

using Duration = std::chrono::nanoseconds;
using WallTime = std::chrono::sys_time<std::chrono::nanoseconds>;  // UTC

constexpr WallTime wall_time(std::int64_t nanoseconds) noexcept {
  return WallTime{Duration{nanoseconds}};
}
constexpr std::int64_t nanoseconds(WallTime time) noexcept {
  return time.time_since_epoch().count();
}

/// A time as its day and what has passed of it, [0, 24 h). Right for every WallTime; std::chrono::floor<days>
/// overflows in the first day that 64 bits hold.
struct DayAndClock {
  std::chrono::sys_days day;
  Duration clock;
};
constexpr DayAndClock day_and_clock(WallTime time) noexcept {
  constexpr std::int64_t kDay = 86'400'000'000'000;
  const std::int64_t nanos = nanoseconds(time);
  const std::int64_t passed = ((nanos % kDay) + kDay) % kDay;
  const std::int64_t day = nanos / kDay - (nanos % kDay < 0 ? 1 : 0);
  return {std::chrono::sys_days{std::chrono::days{day}}, Duration{passed}};
}

/// RFC 3339, UTC, nanoseconds trimmed to 3, 6 or 9 digits: "2026-01-02T03:04:05.678Z".
std::string to_rfc3339(WallTime time);
/// Accepts a fraction of 0…9 digits and Z or ±hh:mm; nullopt for anything else.
std::optional<WallTime> parse_rfc3339(std::string_view text);

/// "30s", "1h30m", "500ms": the largest units first, nothing lost.
std::string to_text(Duration duration);
/// Sum of <number><unit> with units ns us ms s m h d w; fractions allowed ("1.5s"); nullopt else.
std::optional<Duration> parse_duration(std::string_view text);

}  // namespace tocsin::core
