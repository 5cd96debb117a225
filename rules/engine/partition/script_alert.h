// What the training script itself wants people to hear: hook.alert().
#pragma once

#include <optional>
#include <string>

#include "core/frame_body.h"
#include "rules/contract/finding.h"

namespace tocsin::rules {

struct ScriptAlert {
  static constexpr std::size_t kMaxTitle = 200;  // bytes
  static constexpr std::size_t kMaxText = 4000;
  /// So many fire at a time per worker; the one that has for longest makes room.
  static constexpr std::size_t kMaxOpen = 100;

  std::string title;  // one line
  Finding finding;
};

/// nullopt: it says something else. Titles and texts come from outside: what is too long is cut.
std::optional<ScriptAlert> script_alert_of(const core::Lifecycle& body);

}  // namespace tocsin::rules
