// What a person most likely meant where a value does not fit, and where a credential lies open.
// Internal to config.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/node.h"

namespace tocsin::config {

/// "; write 5m" and the like, to go behind an error; empty: no idea. `help` is the key's own.
std::string unit_hint(const Node& node, const core::Duration& wanted, std::string_view help);
std::string unit_hint(const Node& node, const Bytes& wanted, std::string_view help);
std::string unit_hint(const Node& node, bool wanted, std::string_view help);
std::string unit_hint(const Node& node, double wanted, std::string_view help);
std::string unit_hint(const Node& node, std::int64_t wanted, std::string_view help);
/// Of the remaining types nothing is known.
template <typename T>
std::string unit_hint(const Node& node, const T& wanted, std::string_view help) {
  if constexpr (std::is_integral_v<T>) {
    return unit_hint(node, static_cast<std::int64_t>(wanted), help);
  } else {
    return {};
  }
}
template <typename T>
std::string unit_hint(const Node& node, const std::optional<T>&, std::string_view help) {
  return unit_hint(node, T{}, help);
}

/// Why a credential is not safe or not there: `file`: `node` names the file that holds it, else it
/// is the credential itself. Empty: nothing to say.
std::string exposure(const Node& node, bool file);

}  // namespace tocsin::config
