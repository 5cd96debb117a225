// The key `respect` of every action: what holds it back.
#pragma once

#include <optional>

#include "config/config.h"

namespace tocsin::actions {

/// For routing. Unset: as the action's type has it.
struct RespectConfig {
  std::optional<bool> silences;
  std::optional<bool> inhibition;
  std::optional<bool> time;
};

/// Declares the key on the map of an action.
void read(config::Reader& in, RespectConfig& cfg);

}  // namespace tocsin::actions
