#include "core/units.h"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

namespace tocsin::core {
namespace {

// A number as it was written, and what stands behind it: without blanks, in lower case.
struct Quantity {
  std::string number;
  std::string unit;
};

std::optional<Quantity> quantity_of(std::string_view text) {
  double value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc{} || !std::isfinite(value) || std::signbit(value)) return std::nullopt;
  Quantity out;
  out.number.assign(text.data(), end);
  for (const char* at = end; at != last; ++at) {
    if (*at != ' ') {
      out.unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*at)));
    }
  }
  return out;
}

// Words of time in any language that ends its plurals in s; the plural goes first.
std::string time_unit(std::string word) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 18> kWords{{
      {"nanosecond", "ns"},
      {"nanosec", "ns"},
      {"microsecond", "us"},
      {"microsec", "us"},
      {"millisecond", "ms"},
      {"millisec", "ms"},
      {"msec", "ms"},
      {"second", "s"},
      {"sec", "s"},
      {"minute", "m"},
      {"min", "m"},
      {"hour", "h"},
      {"hr", "h"},
      {"day", "d"},
      {"week", "w"},
      {"ms", "ms"},
      {"us", "us"},
      {"ns", "ns"},
  }};
  for (const auto& [name, unit] : kWords) {
    if (word == name || word == std::string(name) + "s") return std::string(unit);
  }
  for (const std::string_view unit : {"s", "m", "h", "d", "w"}) {
    if (word == unit) return word;
  }
  return {};
}

}  // namespace

std::string duration_meant(std::string_view text) {
  const auto found = quantity_of(text);
  const std::string unit = found ? time_unit(found->unit) : std::string();
  return unit.empty() ? std::string() : found->number + unit;
}

std::string duration_hint(std::string_view text) {
  if (const std::string meant = duration_meant(text); !meant.empty()) return "; write " + meant;
  const auto found = quantity_of(text);
  if (!found || !found->unit.empty()) return {};
  return "; a number needs its unit: write " + found->number + "s for seconds, " + found->number +
         "m for minutes";
}

}  // namespace tocsin::core
