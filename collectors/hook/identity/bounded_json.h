// JSON that a caller hands over: bounded before it is parsed, so that neither nesting nor size is a
// caller's weapon (core/json.h).
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/json.h"

namespace tocsin::hook {

inline constexpr std::size_t kMaxGivenJson = 256U << 10;  // bytes

/// A discarded value (which is no object) for what is no JSON or out of bounds.
inline nlohmann::json parse_given(std::string_view text) {
  if (!core::check_json_bounds(text, kMaxGivenJson)) {
    return {nlohmann::json::value_t::discarded};
  }
  return nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
}

}  // namespace tocsin::hook
