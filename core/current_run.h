// A run at this moment, for whoever acts on it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/time.h"

namespace tocsin::core {

/// A run as its newest job event shows it.
struct CurrentRun {
  std::uint32_t attempt = 0;
  std::map<std::string, std::string> launch;  // JobEvent::launch
  bool ended = false;
  std::uint32_t world_size = 1;        // ranks; more than one leave after the same step
  std::optional<std::int64_t> step;    // newest train step of the fastest worker
  std::optional<double> step_seconds;  // median of a train step
  WallTime step_at{};                  // when `step` was reported
  std::uint32_t paces = 0;             // how often `step_seconds` was
};

}  // namespace tocsin::core
