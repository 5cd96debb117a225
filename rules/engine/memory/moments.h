// Times and modes as numbers, as the engine keeps them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/codes.h"

namespace tocsin::rules {

inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();
inline constexpr std::int64_t kForever = std::numeric_limits<std::int64_t>::max();
inline constexpr std::size_t kModes = 4;

constexpr std::size_t at(core::Mode mode) noexcept { return static_cast<std::size_t>(mode) & 3U; }

}  // namespace tocsin::rules
