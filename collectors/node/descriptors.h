// The table of collectors as the section `collect` and the schedule look at it.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>

#include "collectors/collectors.h"

namespace tocsin::collectors {

inline constexpr core::Duration kShortestInterval = std::chrono::milliseconds(100);
inline constexpr core::Duration kLongestInterval = std::chrono::minutes(1);

/// nullptr: the table has none of this name.
const CollectorDescriptor* find_collector(std::string_view name,
                                          std::span<const CollectorDescriptor> table);
/// What to say then, with the nearest name.
std::string unknown_collector(std::string_view name, std::span<const CollectorDescriptor> table);

/// What was configured, else the collector's own defaults. `own` is never null.
CollectorSettings settings_of(const CollectorDescriptor& descriptor, const Config& config);

}  // namespace tocsin::collectors
