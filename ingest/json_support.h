// Private to this room: bounded JSON parsing, and reading objects field by field with errors that
// name the field. Everything here is total on hostile text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "core/identity.h"
#include "core/json.h"
#include "core/labels.h"
#include "core/result.h"
#include "core/time.h"
#include "core/value.h"

namespace tocsin::ingest {

using Json = nlohmann::ordered_json;  // keeps the order of keys, as core::ValueMap does

using core::kMaxJsonDepth;
using core::kMaxJsonKeys;

/// The parsed text. invalid_argument: no JSON (with the place), not UTF-8, out of the bounds of
/// core::check_json_bounds.
core::Result<Json> parse_json(std::string_view text, std::size_t max_bytes);

/// The value of an enumeration with this name, among `values`.
template <typename E, std::size_t N>
std::optional<E> enum_from(const E (&values)[N], std::string_view name) {
  for (const E value : values) {
    if (to_string(value) == name) return value;
  }
  return std::nullopt;
}

/// Compact text; bytes that are not UTF-8 become U+FFFD.
std::string dump(const Json& json);

/// A number, or its text when it is not finite.
Json number_json(double value);
/// Reads what number_json() wrote; nullopt for anything that is no number.
std::optional<double> number_from(const Json& json);

Json value_json(const core::Value& value);
/// The texts "NaN", "Infinity", "-Infinity" become numbers: that is how JSON here writes them.
core::Value value_from(const Json& json);

Json labels_json(const core::Labels& labels);
Json time_json(core::WallTime time);
/// null when the time was never set.
Json time_or_null(core::WallTime time);

/// Reads fields of one object. An absent or null field leaves its target alone; a wrong type is
/// remembered (the first one only) and leaves it alone too. Ask ok() at the end.
class Fields {
 public:
  /// `object` and `error` outlive this. `path` is put before names in the error.
  Fields(const Json& object, std::string path, std::string& error);

  [[nodiscard]] bool ok() const noexcept { return error_->empty(); }
  /// The field, unless absent or null.
  [[nodiscard]] const Json* find(std::string_view name) const;
  [[nodiscard]] bool has(std::string_view name) const { return find(name) != nullptr; }
  void wrong(std::string_view name, std::string_view expected) const;
  void missing(std::string_view name) const;

  void text(std::string_view name, std::string& out) const;
  void boolean(std::string_view name, bool& out) const;
  void number(std::string_view name, double& out) const;
  void time(std::string_view name, core::WallTime& out) const;
  void time(std::string_view name, std::optional<core::WallTime>& out) const;
  void labels(std::string_view name, core::Labels& out) const;
  void value(std::string_view name, core::Value& out) const;
  void uid(std::string_view name, core::RunUid& out) const;

  template <typename T>
  void integer(std::string_view name, T& out) const {
    const std::optional<std::int64_t> found = whole(name, least<T>(), most<T>());
    if (found) out = static_cast<T>(*found);
  }
  template <typename T>
  void integer(std::string_view name, std::optional<T>& out) const {
    const std::optional<std::int64_t> found = whole(name, least<T>(), most<T>());
    if (found) out = static_cast<T>(*found);
  }
  /// One of few words; parse(const std::string&) gives an optional of the target's type.
  template <typename T, typename Parse>
  void word(std::string_view name, T& out, Parse&& parse) const {
    std::string text;
    this->text(name, text);
    if (text.empty()) return;
    if (const auto parsed = parse(text)) {
      out = *parsed;
    } else {
      wrong(name, "a known word, not \"" + text.substr(0, 40) + "\"");
    }
  }
  /// Calls visit(const Json&) for each item of a list.
  template <typename Visit>
  void each(std::string_view name, Visit&& visit) const {
    const Json* list = find(name);
    if (list == nullptr) return;
    if (!list->is_array()) return wrong(name, "a list");
    for (const Json& item : *list) visit(item);
  }
  /// Calls visit(const Fields&) for an object field.
  template <typename Visit>
  void object(std::string_view name, Visit&& visit) const {
    const Json* found = find(name);
    if (found == nullptr) return;
    if (!found->is_object()) return wrong(name, "an object");
    visit(Fields(*found, path_ + std::string(name) + ".", *error_));
  }
  /// Calls visit(const Fields&) for each object of a list.
  template <typename Visit>
  void objects(std::string_view name, Visit&& visit) const {
    each(name, [&](const Json& item) {
      if (!item.is_object()) return wrong(name, "a list of objects");
      visit(Fields(item, path_ + std::string(name) + "[].", *error_));
    });
  }

 private:
  template <typename T>
  static constexpr std::int64_t least() {
    return static_cast<std::int64_t>(std::numeric_limits<T>::min());
  }
  template <typename T>
  static constexpr std::int64_t most() {
    if constexpr (sizeof(T) == 8) return std::numeric_limits<std::int64_t>::max();
    return static_cast<std::int64_t>(std::numeric_limits<T>::max());
  }
  std::optional<std::int64_t> whole(std::string_view name, std::int64_t least,
                                    std::int64_t most) const;

  const Json* object_;
  std::string path_;
  std::string* error_;
};

}  // namespace tocsin::ingest
