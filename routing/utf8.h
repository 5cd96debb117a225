// Checking and counting UTF-8 (RFC 3629), for texts that users write and for error positions.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace tocsin::routing {

/// Byte position of the first sequence that is not UTF-8 (overlong forms, surrogates and values
/// above U+10FFFF are not); nullopt when all is well.
inline std::optional<std::size_t> first_invalid_utf8(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  std::size_t i = 0;
  while (i < text.size()) {
    const unsigned lead = byte(i);
    const std::size_t length = lead < 0x80   ? 1
                               : lead < 0xc2 ? 0
                               : lead < 0xe0 ? 2
                               : lead < 0xf0 ? 3
                               : lead < 0xf5 ? 4
                                             : 0;
    if (length == 0 || length > text.size() - i) return i;
    for (std::size_t k = 1; k < length; ++k) {
      if ((byte(i + k) & 0xc0U) != 0x80U) return i;
    }
    if (length >= 3) {
      const unsigned second = byte(i + 1);
      const bool bad = (lead == 0xe0 && second < 0xa0) || (lead == 0xed && second >= 0xa0) ||
                       (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second >= 0x90);
      if (bad) return i;
    }
    i += length;
  }
  return std::nullopt;
}

/// Characters of valid UTF-8: bytes that do not continue one.
inline std::size_t count_code_points(std::string_view text) noexcept {
  std::size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xc0U) != 0x80U ? 1 : 0;
  return count;
}

}  // namespace tocsin::routing
