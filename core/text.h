// Small text helpers that several rooms need.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tocsin::core {

/// The candidate with the least edit distance to `wanted`, if it is near enough (at most a third of
/// its length, at least 1) to be what was meant; else the only one that goes on where `wanted` (4
/// characters or more) ends; empty else.
std::string nearest(std::string_view wanted, const std::vector<std::string>& candidates);

// UTF-8 (RFC 3629), by utfcpp.

/// Byte position of the first sequence that is not UTF-8 (overlong forms, surrogates and values
/// above U+10FFFF are not); nullopt when all is well.
std::optional<std::size_t> first_invalid_utf8(std::string_view text);
/// Characters of valid UTF-8.
std::size_t count_code_points(std::string_view text) noexcept;
/// The longest prefix of at most `bytes` that ends between two characters.
std::string_view cut_utf8(std::string_view text, std::size_t bytes) noexcept;

}  // namespace tocsin::core
