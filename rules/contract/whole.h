// Whether every byte of a structure belongs to one of its members: only then are two equal values
// equal byte for byte, whatever stood in memory before.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tocsin::rules {

// In a constant expression, bytes that belong to nobody may not be read.
template <typename T>
constexpr bool reads_every_byte() {
  unsigned sum = 0;
  for (const unsigned char byte : std::bit_cast<std::array<unsigned char, sizeof(T)>>(T{})) {
    sum |= byte;
  }
  return sum <= 0xFF;
}

/// A structure without padding; one without members has its byte to itself, and nothing to write there.
template <typename T>
concept Whole = std::is_empty_v<T> || requires {
  typename std::bool_constant<reads_every_byte<T>()>;
};

/// What stands in a structure where the compiler would leave so many bytes to chance: `Gap<4> gap{};`.
template <std::size_t bytes>
using Gap = std::array<std::uint8_t, bytes>;

}  // namespace tocsin::rules
