// Fields of a record's bytes: little-endian, unaligned. Internal to the wire.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>

namespace tocsin::ingest {

/// The caller has looked that it is there.
template <typename T>
T load(std::span<const std::byte> bytes, std::size_t at) noexcept {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

inline std::string_view text_of(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Areas of a frame begin at multiples of eight bytes.
constexpr std::size_t padded(std::size_t bytes) noexcept { return (bytes + 7) & ~std::size_t{7}; }

}  // namespace tocsin::ingest
