// Magnitudes of elements, for statistics that do not ask for the sign.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "collectors/elements.h"

namespace tocsin::collectors {

/// A type whose elements have a magnitude: a number, or a complex one.
constexpr bool has_magnitude(core::Dtype dtype) noexcept {
  return is_real(dtype) || dtype == core::Dtype::c64 || dtype == core::Dtype::c128;
}

/// Writes |x| of `n` elements to `to`, of a complex number its modulus.
inline void magnitudes(core::Dtype dtype, const std::byte* from, std::size_t n, double* to) {
  if (is_real(dtype)) {
    widen(dtype, from, n, to);
    for (std::size_t i = 0; i < n; ++i) to[i] = std::fabs(to[i]);
    return;
  }
  const std::size_t width = core::size_of(dtype);
  for (std::size_t i = 0; i < n; ++i) {
    std::array<double, 2> parts{};
    widen(dtype, from + i * width, 2, parts.data());
    to[i] = std::hypot(parts[0], parts[1]);
  }
}

/// Calls visit(block) with the magnitudes in the order of memory, a cache-sized block at a time. False,
/// and no call, for types that have none.
template <typename Visit>
bool each_block_of_magnitudes(core::Dtype dtype, const void* data, std::uint64_t count,
                              Visit&& visit) {
  constexpr std::size_t kBlock = 1024;
  if (!has_magnitude(dtype)) return false;
  const DefaultFloatEnvironment environment;
  const std::size_t width = core::size_of(dtype);
  const auto* from = static_cast<const std::byte*>(data);
  std::array<double, kBlock> block;
  while (count != 0) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(count, kBlock));
    magnitudes(dtype, from, n, block.data());
    visit(std::span<const double>(block.data(), n));
    from += n * width;
    count -= n;
  }
  return true;
}

}  // namespace tocsin::collectors
