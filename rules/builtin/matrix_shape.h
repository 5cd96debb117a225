// Which weights are matrices: things whose units must differ from the start.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tocsin::rules {

/// Gains of a normalisation over channels and points begin at 1, and have so many dimensions.
inline constexpr std::size_t kGainRank = 3;

/// Two dimensions or more are larger than 1. A scale per channel is written as [n, 1, 1], and is a vector.
inline bool is_matrix(std::span<const std::int64_t> shape) {
  return std::count_if(shape.begin(), shape.end(), [](std::int64_t n) { return n > 1; }) >= 2;
}

}  // namespace tocsin::rules
