// The one gate for JSON from outside: bounded in bytes, depth and keys before anything is built, so
// that neither a parser's recursion nor a linear search is at a sender's mercy.
#pragma once

#include <cstddef>
#include <string_view>

#include "core/result.h"
#include "core/value.h"

namespace tocsin::core {

inline constexpr std::size_t kMaxJsonDepth = 32;
inline constexpr std::size_t kMaxJsonKeys = 512;  // of one object

/// ok, or invalid_argument: larger than `max_bytes`, deeper than kMaxJsonDepth, an object with more
/// than kMaxJsonKeys keys. Says nothing of whether it is JSON. Linear, no allocation.
Status check_json_bounds(std::string_view text, std::size_t max_bytes);

/// The parsed text, map keys in their order. The texts "NaN", "Infinity", "-Infinity" stay texts.
/// invalid_argument: out of bounds, no JSON (with the place), not UTF-8.
Result<Value> parse_json(std::string_view text, std::size_t max_bytes);

}  // namespace tocsin::core
