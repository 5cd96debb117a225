// How long the store keeps what, by class.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>

#include "core/time.h"
#include "insights/series/bucket.h"
#include "insights/series/series_schema.h"

namespace tocsin::insights {

/// The section `store.keep`. Rows are single values; rollups are the buckets of the lowest level.
struct KeepAges {
  core::Duration runs = std::chrono::hours{24} * 400;
  core::Duration scalars = std::chrono::hours{24} * 90;
  core::Duration tensors = std::chrono::hours{24} * 14;
  core::Duration tensor_rollups = std::chrono::hours{24} * 30;
  core::Duration system = std::chrono::hours{24};
  core::Duration system_rollups = std::chrono::hours{24} * 14;
  core::Duration spans = std::chrono::hours{24};
};

/// What is kept of a family: its rows, and the buckets of each level from the lowest one up.
inline constexpr std::size_t kKeptParts = static_cast<std::size_t>(kLevels) + 1;
inline constexpr std::size_t kRowsPart = 0;

/// The ages of a kind's parts. Each level above the lowest lives four times as long as the one below, at most as
/// long as runs do. Scalars and step clocks have one age: their lowest buckets live four times as long as their rows.
/// Buckets of spans only help to find rows, and go with them.
std::array<core::Duration, kKeptParts> ages_of(FamilyKind kind, const KeepAges& keep);

}  // namespace tocsin::insights
