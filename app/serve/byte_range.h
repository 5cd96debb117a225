// A part of an answer, as `Range: bytes=…` asks for it (RFC 9110, 14).
#pragma once

#include <cstdint>
#include <string_view>

namespace tocsin::app {

/// [begin, end) of `size` bytes.
struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

enum class RangeAsked { whole, part, beyond };  // beyond: none of the bytes is there

/// `header`: the value of Range; empty: there is none. What is no range of bytes, and several ranges
/// at once, ask for the whole, as the RFC allows.
RangeAsked asked_range(std::string_view header, std::uint64_t size, ByteRange& out);

}  // namespace tocsin::app
