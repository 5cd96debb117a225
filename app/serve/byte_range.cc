#include "app/serve/byte_range.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace tocsin::app {
namespace {

constexpr std::string_view kBytesUnit = "bytes=";

std::optional<std::uint64_t> byte_number(std::string_view text) {
  std::uint64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

}  // namespace

RangeAsked asked_range(std::string_view header, std::uint64_t size, ByteRange& out) {
  out = {0, size};
  if (!header.starts_with(kBytesUnit)) return RangeAsked::whole;
  header.remove_prefix(kBytesUnit.size());
  const std::size_t dash = header.find('-');
  if (dash == std::string_view::npos || header.find(',') != std::string_view::npos)
    return RangeAsked::whole;
  const auto first = byte_number(header.substr(0, dash));
  const auto last = byte_number(header.substr(dash + 1));
  if (dash == 0) {  // the last so many
    if (!last) return RangeAsked::whole;
    if (*last == 0 || size == 0) return RangeAsked::beyond;
    out.begin = size - std::min(*last, size);
    return RangeAsked::part;
  }
  const bool open = dash + 1 == header.size();
  if (!first || (!last && !open) || (last && *last < *first)) return RangeAsked::whole;
  if (*first >= size) return RangeAsked::beyond;
  out.begin = *first;
  if (last) out.end = std::min(*last, size - 1) + 1;
  return RangeAsked::part;
}

}  // namespace tocsin::app
