// Small floating-point formats as bit patterns → binary32, exactly, for every pattern.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tocsin::collectors {

/// bfloat16: the upper half of a binary32.
inline float from_bf16(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// A sign, `kExponent` bits of exponent and `kMantissa` of mantissa, as IEEE 754 lays them out.
/// `kHasInfinity` false: the largest exponent holds ordinary numbers and its last pattern is NaN
/// (OCP 8-bit Floating Point Specification 1.0, E4M3).
template <int kExponent, int kMantissa, bool kHasInfinity>
float from_small_float(std::uint32_t bits) noexcept {
  constexpr std::uint32_t kMantissaMask = (1U << kMantissa) - 1;
  constexpr std::uint32_t kExponentMask = (1U << kExponent) - 1;
  constexpr int kBias = (1 << (kExponent - 1)) - 1;
  const std::uint32_t mantissa = bits & kMantissaMask;
  const std::uint32_t exponent = (bits >> kMantissa) & kExponentMask;
  const bool negative = (bits >> (kMantissa + kExponent)) & 1U;
  float magnitude = 0;
  if (kHasInfinity && exponent == kExponentMask) {
    magnitude = mantissa == 0 ? std::numeric_limits<float>::infinity()
                              : std::numeric_limits<float>::quiet_NaN();
  } else if (!kHasInfinity && exponent == kExponentMask && mantissa == kMantissaMask) {
    magnitude = std::numeric_limits<float>::quiet_NaN();
  } else if (exponent == 0) {
    magnitude = std::ldexp(static_cast<float>(mantissa), 1 - kBias - kMantissa);
  } else {
    magnitude = std::ldexp(static_cast<float>(mantissa | (1U << kMantissa)),
                           static_cast<int>(exponent) - kBias - kMantissa);
  }
  return negative ? -magnitude : magnitude;
}

inline float from_f16(std::uint16_t bits) noexcept { return from_small_float<5, 10, true>(bits); }
inline float from_f8_e4m3(std::uint8_t bits) noexcept {
  return from_small_float<4, 3, false>(bits);
}
inline float from_f8_e5m2(std::uint8_t bits) noexcept { return from_small_float<5, 2, true>(bits); }

}  // namespace tocsin::collectors
