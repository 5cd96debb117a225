// A small dynamic value, for evidence and effective parameters: what JSON can hold, in order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tocsin::core {

class Value;
using ValueList = std::vector<Value>;
using ValueMap = std::vector<std::pair<std::string, Value>>;  // keeps the order it was written in

/// null, bool, integer, number (may be NaN or infinite), text, list or map.
class Value {
 public:
  using Storage =
      std::variant<std::monostate, bool, std::int64_t, double, std::string, ValueList, ValueMap>;

  Value() = default;
  // Implicit on purpose: a value is written where a literal would be.
  // NOLINTBEGIN(google-explicit-constructor)
  Value(bool value) : storage_(value) {}
  Value(int value) : storage_(std::int64_t{value}) {}
  Value(std::int64_t value) : storage_(value) {}
  Value(std::uint64_t value) : storage_(static_cast<std::int64_t>(value)) {}
  Value(double value) : storage_(value) {}
  Value(const char* value) : storage_(std::string(value)) {}
  Value(std::string value) : storage_(std::move(value)) {}
  Value(ValueList value) : storage_(std::move(value)) {}
  Value(ValueMap value) : storage_(std::move(value)) {}
  // NOLINTEND(google-explicit-constructor)

  [[nodiscard]] const Storage& storage() const noexcept { return storage_; }
  [[nodiscard]] bool is_null() const noexcept { return storage_.index() == 0; }
  friend bool operator==(const Value&, const Value&) = default;

 private:
  Storage storage_;
};

/// The value as a T, one of the types that Storage names; null when it is another.
template <typename T>
[[nodiscard]] const T* as(const Value& value) noexcept {
  return std::get_if<T>(&value.storage());
}
/// The same of a value that may be missing: as<T>(find(…)).
template <typename T>
[[nodiscard]] const T* as(const Value* value) noexcept {
  return value == nullptr ? nullptr : std::get_if<T>(&value->storage());
}

/// The first entry of that name, or null.
[[nodiscard]] const Value* find(const ValueMap& map, std::string_view key) noexcept;
/// The same of a value; null when it is no map.
[[nodiscard]] const Value* find(const Value& value, std::string_view key) noexcept;
/// The text of that name; empty when it is missing or no text.
[[nodiscard]] std::string text_at(const Value& value, std::string_view key);

/// Compact JSON, map keys in the order given (`sorted`: in byte order). A non-finite number becomes
/// "NaN", "Infinity" or "-Infinity"; doubles print as the shortest text that reads back the same,
/// whole doubles without a fraction (1e-7 → 1e-07, 10.0 → 10).
std::string to_json(const Value& value, bool sorted = false);

}  // namespace tocsin::core
