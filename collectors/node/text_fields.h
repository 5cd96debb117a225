// Words and numbers out of the kernel's text files, without allocation.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tocsin::collectors {

/// Takes the first line off `text`, without its newline.
inline std::string_view take_line(std::string_view& text) noexcept {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

/// Takes the next word off `line` (words are parted by blanks and tabs); empty at the end.
inline std::string_view take_word(std::string_view& line) noexcept {
  const std::size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos) {
    line = {};
    return {};
  }
  line.remove_prefix(begin);
  const std::string_view word = line.substr(0, line.find_first_of(" \t"));
  line.remove_prefix(word.size());
  return word;
}

/// All of `word` as a number.
inline std::optional<std::uint64_t> to_u64(std::string_view word) noexcept {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size() || word.empty()) return std::nullopt;
  return value;
}

inline std::optional<std::uint64_t> take_u64(std::string_view& line) noexcept {
  return to_u64(take_word(line));
}

}  // namespace tocsin::collectors
