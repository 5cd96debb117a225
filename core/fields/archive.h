// The words of a declaration. Every message has one: fields(archive, message) names each of its
// fields once, with its meaning. What an archive does with it is the archive's: JsonIn reads JSON,
// Out writes JSON text or a core::Value, Describe makes the page and the JSON Schema.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/identity.h"
#include "core/time.h"
#include "core/value.h"

namespace tocsin::core {

/// The message as an archive needs it: only reading changes it.
template <typename A, typename T>
using Of = std::conditional_t<A::kReading, T, const T>;

/// What holds for a field beside its value; joined by |.
///
/// A record (wire, state, outbox) must come back whole. A message is what people and their programs
/// are told: less of it, and always the same keys.
enum class How : unsigned {
  plain = 0,
  required = 1,       // absent, null or an empty text is an error
  null_if_empty = 2,  // in a record an empty value is null
  omit_if_empty = 4,  // an empty value is left out
  record = 8,         // no part of a message
  message = 16,       // no part of a record
};
constexpr How operator|(How a, How b) noexcept {
  return static_cast<How>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr bool has(How how, How flag) noexcept {
  return (static_cast<unsigned>(how) & static_cast<unsigned>(flag)) != 0;
}

/// The values of an enumeration that have a name on the wire; to_string() gives it.
template <typename E>
struct Words;

/// A time as whole nanoseconds, as state records hold it.
template <typename T>
struct Nanoseconds {
  T& time;
};
template <typename T>
Nanoseconds(T&) -> Nanoseconds<T>;

/// An enumeration as its number.
template <typename E>
struct Number {
  E& value;
  std::remove_const_t<E> last;  // the greatest
};
template <typename E, typename L>
Number(E&, L) -> Number<E>;

/// A text; what is none is taken as its JSON.
template <typename T>
struct AnyText {
  T& text;
};
template <typename T>
AnyText(T&) -> AnyText<T>;

/// "all", which is an empty list, or the list.
template <typename T>
struct AllOr {
  T& list;
};
template <typename T>
AllOr(T&) -> AllOr<T>;

namespace archive {

template <typename T>
inline constexpr bool kOptional = false;
template <typename T>
inline constexpr bool kOptional<std::optional<T>> = true;
template <typename T>
inline constexpr bool kList = false;
template <typename T>
inline constexpr bool kList<std::vector<T>> = true;
template <typename T>
inline constexpr bool kMap = false;
template <typename K, typename V, typename C, typename M>
inline constexpr bool kMap<std::map<K, V, C, M>> = true;
template <typename T>
inline constexpr bool kNanoseconds = false;
template <typename T>
inline constexpr bool kNanoseconds<Nanoseconds<T>> = true;
template <typename T>
inline constexpr bool kNumber = false;
template <typename T>
inline constexpr bool kNumber<Number<T>> = true;
template <typename T>
inline constexpr bool kAnyText = false;
template <typename T>
inline constexpr bool kAnyText<AnyText<T>> = true;
template <typename T>
inline constexpr bool kAllOr = false;
template <typename T>
inline constexpr bool kAllOr<AllOr<T>> = true;
template <typename T>
inline constexpr bool kPair = false;
template <typename F, typename S>
inline constexpr bool kPair<std::pair<F, S>> = true;
/// Clang 14 takes a pair for not default constructible when a nested struct with defaults is in it.
template <typename F, typename S>
std::pair<F, S> blank() {
  return {F{}, S{}};
}
/// Texts by name, in their order: an object.
using Texts = std::vector<std::pair<std::string, std::string>>;

}  // namespace archive

/// What null_if_empty and omit_if_empty take for empty.
template <typename T>
bool is_empty(const T& value) {
  if constexpr (std::is_same_v<T, RunUid>) {
    return value.nil();
  } else if constexpr (std::is_same_v<T, Value>) {
    return value.is_null();
  } else if constexpr (archive::kAnyText<T>) {
    return value.text.empty();
  } else if constexpr (archive::kOptional<T>) {
    return !value.has_value();
  } else if constexpr (std::is_arithmetic_v<T>) {
    return value == T{};
  } else if constexpr (requires { value.empty(); }) {
    return value.empty();
  } else {
    return false;
  }
}

// What a row of a map holds: the key, then the items of its value.
template <typename A, typename T>
requires(std::is_arithmetic_v<std::remove_const_t<T>> ||
         std::is_same_v<std::remove_const_t<T>, std::string>) void row(A& archive, T& value) {
  archive.item(value);
}
template <typename A, typename F, typename S>
void row(A& archive, std::pair<F, S>& entry) {
  archive.item(entry.first);
  row(archive, entry.second);
}
template <typename A, typename F, typename S>
void row(A& archive, const std::pair<F, S>& entry) {
  archive.item(entry.first);
  row(archive, entry.second);
}

}  // namespace tocsin::core
