// Reading what a launcher put into the environment.
#pragma once

#include <charconv>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tocsin::hook {

/// The whole text as a decimal number; nullopt for anything else.
inline std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

class Variables {
 public:
  using Lookup = std::function<std::optional<std::string>(const std::string&)>;
  /// Borrows the lookup.
  explicit Variables(const Lookup& lookup) : lookup_(lookup) {}

  /// The first of these that is set and not empty; else an empty text.
  [[nodiscard]] std::string text(std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      if (auto value = lookup_(name); value && !value->empty()) return *value;
    }
    return {};
  }
  /// The first of these that is a number.
  [[nodiscard]] std::optional<std::int64_t> integer(
      std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      const auto value = lookup_(name);
      if (!value) continue;
      if (auto parsed = number(*value)) return parsed;
    }
    return std::nullopt;
  }

 private:
  const Lookup& lookup_;
};

}  // namespace tocsin::hook
