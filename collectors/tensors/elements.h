// Elements of any numeric type as binary64, at any address.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "collectors/tensors/float_environment.h"
#include "core/codes.h"
#include "core/frame.h"

namespace tocsin::collectors {

/// Writes `n` elements to `to`: integers of more than 53 bits rounded, a boolean as 0 or 1, of a
/// complex type its parts, so that `n` counts those. unknown and text: nothing is written.
void widen(core::Dtype dtype, const std::byte* from, std::size_t n, double* to);

/// A type whose elements are single numbers.
constexpr bool is_real(core::Dtype dtype) noexcept {
  return dtype != core::Dtype::unknown && dtype != core::Dtype::text && dtype != core::Dtype::c64 &&
         dtype != core::Dtype::c128;
}

/// Calls visit(block) with what fill(from, n, to) makes of the elements, in the order of memory, a
/// cache-sized block at a time. `width`: bytes of an element.
template <typename Fill, typename Visit>
void each_block_of(std::size_t width, const void* data, std::uint64_t count, Fill&& fill,
                   Visit&& visit) {
  constexpr std::size_t kBlock = 1024;
  const DefaultFloatEnvironment environment;
  const auto* from = static_cast<const std::byte*>(data);
  std::array<double, kBlock> block;
  while (count != 0) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(count, kBlock));
    fill(from, n, block.data());
    visit(std::span<const double>(block.data(), n));
    from += n * width;
    count -= n;
  }
}

/// Calls visit(block) with the elements. False, and no call, for types that are not real.
template <typename Visit>
bool each_block(core::Dtype dtype, const void* data, std::uint64_t count, Visit&& visit) {
  if (!is_real(dtype)) return false;
  each_block_of(
      core::size_of(dtype), data, count,
      [dtype](const std::byte* from, std::size_t n, double* to) { widen(dtype, from, n, to); },
      visit);
  return true;
}

}  // namespace tocsin::collectors
