#include "app/view/summary_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "core/visible_text.h"

namespace tocsin::app {
namespace {

constexpr std::size_t kMostItems = 8;  // of a list

std::string number(double value) {
  if (!std::isfinite(value)) return core::to_json(value);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", value);
  return text.data();
}

std::string words(const core::Value& value);

std::string words(const core::ValueList& list) {
  std::string out;
  for (std::size_t i = 0; i < list.size() && i < kMostItems; ++i) {
    out += (i == 0 ? "" : ", ") + words(list[i]);
  }
  return list.size() > kMostItems ? out + ", … (" + std::to_string(list.size()) + ")" : out;
}

/// Numbers and texts are joined by commas; what has names of its own follows behind a semicolon.
std::string words(const core::ValueMap& map) {
  std::string out;
  bool named = false;
  for (const auto& [name, value] : map) {
    const bool deep = core::as<core::ValueMap>(value) != nullptr;
    if (!out.empty()) out += named || deep ? "; " : ", ";
    out += core::visible(name) + (deep ? ": " : " ") + words(value);
    named = deep;
  }
  return out;
}

std::string words(const core::Value& value) {
  if (const auto* map = core::as<core::ValueMap>(value)) return words(*map);
  if (const auto* list = core::as<core::ValueList>(value)) return words(*list);
  if (const auto* text = core::as<std::string>(value)) return core::visible(*text);
  if (const auto* real = core::as<double>(value)) return number(*real);
  return core::to_json(value);
}

bool flat(const core::ValueMap& map) {
  return std::none_of(map.begin(), map.end(), [](const auto& entry) {
    return core::as<core::ValueMap>(entry.second) != nullptr;
  });
}

}  // namespace

std::string summary_line(const core::ValueMap& summary, std::size_t most) {
  std::string out = words(summary);
  if (out.size() <= most) return out;
  while (most > 0 && (static_cast<unsigned char>(out[most]) & 0xC0U) == 0x80U) --most;
  return out.substr(0, most) + "…";
}

std::string summary_lines(const core::ValueMap& summary, std::size_t indent) {
  const std::string blanks(indent, ' ');
  if (flat(summary)) return summary.empty() ? "" : blanks + words(summary) + "\n";
  std::string out;
  for (const auto& [name, value] : summary) {
    const auto* map = core::as<core::ValueMap>(value);
    if (map == nullptr || flat(*map)) {
      out += blanks + core::visible(name) + "  " + words(value) + "\n";
    } else {
      out += blanks + core::visible(name) + "\n" + summary_lines(*map, indent + 2);
    }
  }
  return out;
}

}  // namespace tocsin::app
