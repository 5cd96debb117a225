// The record of a batch of events that were seen: bytes, for a start with a million of them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/time.h"

namespace tocsin::routing {

/// An event by what is left of its source and id.
struct SeenEvent {
  using Hash = std::array<std::uint8_t, 16>;  // of a SHA-256
  Hash hash{};
  core::WallTime at{};  // when it arrived
};

std::string write_seen_record(const std::vector<SeenEvent>& events);
/// Also what earlier releases wrote: JSON with many events, and a number, the time of the one event
/// that the key names.
core::Result<std::vector<SeenEvent>> read_seen_record(std::string_view key, std::string_view value);

}  // namespace tocsin::routing
