// When an issue counts as flapping, and how long it must be calm (docs/flapping.md).
#pragma once

#include <cstdint>
#include <optional>

#include "config/config.h"
#include "core/time.h"

namespace tocsin::routing {

/// At its `episodes`-th begin within `within` an issue flaps; its resolves are held until nothing has
/// happened to it for `hold`.
struct FlapConfig {
  std::uint32_t episodes = 4;
  core::Duration within = std::chrono::minutes(30);
  core::Duration hold = std::chrono::minutes(15);
};
/// Most begins that are remembered of an issue.
inline constexpr std::uint32_t kMaxFlapEpisodes = 64;

/// The key `flap` of a route; unset: it is not there.
void read_flap(config::Reader& in, std::optional<FlapConfig>& out);

}  // namespace tocsin::routing
