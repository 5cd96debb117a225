// Magnitudes of elements, for statistics that do not ask for the sign.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "collectors/tensors/elements.h"

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

/// Calls visit(block) with the magnitudes. False, and no call, for types that have none.
template <typename Visit>
bool each_block_of_magnitudes(core::Dtype dtype, const void* data, std::uint64_t count,
                              Visit&& visit) {
  if (!has_magnitude(dtype)) return false;
  each_block_of(
      core::size_of(dtype), data, count,
      [dtype](const std::byte* from, std::size_t n, double* to) { magnitudes(dtype, from, n, to); },
      visit);
  return true;
}

}  // namespace tocsin::collectors
