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

/// RFC 3339, UTC, nanoseconds trimmed to 3, 6 or 9 digits: "2026-01-02T03:04:05.678Z".
std::string to_rfc3339(WallTime time);
/// Accepts a fraction of 0…9 digits and Z or ±hh:mm; nullopt for anything else.
std::optional<WallTime> parse_rfc3339(std::string_view text);

/// "30s", "1h30m", "500ms": the largest units first, nothing lost.
std::string to_text(Duration duration);
/// Sum of <number><unit> with units ns us ms s m h d w; fractions allowed ("1.5s"); nullopt else.
std::optional<Duration> parse_duration(std::string_view text);

}  // namespace tocsin::core
