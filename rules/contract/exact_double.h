// Whole numbers as doubles, several in one instruction: the instruction for 64-bit ones is one that
// only the newest processors have.
#pragma once

#include <bit>
#include <cstdint>

namespace tocsin::rules {

inline constexpr std::uint64_t kExactDouble = std::uint64_t{1} << 52;

/// `number` < kExactDouble, exactly; of larger ones anything.
inline double exact_double(std::uint64_t number) noexcept {
  constexpr double kBase =
      4503599627370496.0;  // 2^52: below its point stand 52 bits for the number
  return std::bit_cast<double>(number | std::bit_cast<std::uint64_t>(kBase)) - kBase;
}

}  // namespace tocsin::rules
