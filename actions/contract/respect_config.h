// The keys `respect` and `resolve_when_suppressed` of every action: what holds it back, and what
// becomes of an end meanwhile.
#pragma once

#include <optional>
#include <string>

#include "config/config.h"

namespace tocsin::actions {

/// For routing. Unset: as the action's type has it.
struct RespectConfig {
  std::optional<bool> silences;
  std::optional<bool> inhibition;
  std::optional<bool> time;
  std::string resolve_when_suppressed;  // send, defer, drop; empty: as the action's type has it
};

/// Declares both keys on the map of an action.
void read(config::Reader& in, RespectConfig& cfg);

}  // namespace tocsin::actions
