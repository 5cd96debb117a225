#include "actions/platform/platform_fence.h"

#include <algorithm>
#include <charconv>

namespace tocsin::actions {
namespace {

constexpr std::size_t kMaxDnsName = 253;
constexpr std::int64_t kBillion = 1'000'000'000;

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

}  // namespace

std::optional<std::int64_t> whole_at(const core::Value& value, std::string_view key) {
  const core::Value* found = core::find(value, key);
  if (found == nullptr) return std::nullopt;
  if (const auto* number = core::as<std::int64_t>(*found)) return *number;
  if (const auto* text = core::as<std::string>(*found)) {
    std::int64_t number = 0;
    const char* end = text->data() + text->size();
    const auto read = std::from_chars(text->data(), end, number);
    if (!text->empty() && read.ec == std::errc{} && read.ptr == end) return number;
    return std::nullopt;
  }
  if (core::as<core::ValueMap>(*found) == nullptr) return std::nullopt;
  const auto* set = core::as<bool>(core::find(*found, "set"));
  const auto* infinite = core::as<bool>(core::find(*found, "infinite"));
  if ((set != nullptr && !*set) || (infinite != nullptr && *infinite)) return std::nullopt;
  const auto* number = core::as<std::int64_t>(core::find(*found, "number"));
  return number == nullptr ? std::nullopt : std::optional(*number);
}

bool is_dns_name(std::string_view text) {
  if (text.empty() || text.size() > kMaxDnsName) return false;
  char before = '.';
  for (const char c : text) {
    const bool word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (!word && c != '-' && c != '.') return false;
    if (!word && before == '.') return false;     // a part begins with a letter or digit
    if (c == '.' && before == '-') return false;  // and ends with one
    before = c;
  }
  return before != '.' && before != '-';
}

bool is_plain_name(std::string_view text, std::size_t most, std::string_view more) {
  if (text.empty() || text.size() > most || text == "." || text == "..") return false;
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return is_alphanumeric(c) || more.find(c) != std::string_view::npos;
  });
}

bool made_before_opening(std::int64_t made_seconds, const core::Value& fence, bool unknown) {
  const auto opened = whole_at(fence, "opened");
  if (!opened || *opened <= 0) return unknown;
  return made_seconds <= *opened + kClocksDiffer;
}

std::optional<std::int64_t> seconds_of(std::string_view rfc3339) {
  const auto time = core::parse_rfc3339(std::string(rfc3339));
  if (!time) return std::nullopt;
  return core::nanoseconds(*time) / kBillion;
}

std::string time_text(std::int64_t seconds) {
  constexpr std::int64_t kMost = 9'000'000'000;
  if (seconds < 0 || seconds > kMost) return std::to_string(seconds);
  return core::to_rfc3339(core::wall_time(seconds * kBillion));
}

}  // namespace tocsin::actions
