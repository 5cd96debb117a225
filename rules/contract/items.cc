#include "rules/contract/items.h"

#include <utility>

namespace tocsin::rules {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::vector<std::string> parts_of(std::string_view text) {
  std::vector<std::string> out;
  std::size_t from = 0;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\') {
      ++i;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth <= 0) {
      out.emplace_back(trimmed(text.substr(from, i - from)));
      from = i + 1;
    }
  }
  out.emplace_back(trimmed(text.substr(from)));
  return out;
}

}  // namespace

void read_items(config::Reader& in, std::string_view key, std::vector<std::string>& items,
                std::string_view help) {
  in.optional(key, items, help);
  if (in.describing() || !in.has(key)) return;
  const std::optional<core::Value> given = in.value(key);
  const auto* text = given ? core::as<std::string>(*given) : nullptr;
  if (text == nullptr || text->find(',') == std::string::npos) return;
  items = parts_of(*text);
  for (const std::string& item : items) {
    if (item.empty()) return in.error(key, "there is nothing between two commas");
  }
}

}  // namespace tocsin::rules
