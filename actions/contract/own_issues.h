// The issues by which people hear that a message or a stop did not arrive, and of a stop that one of
// them asked for (docs/actions/README.md).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/own_issue.h"

namespace tocsin::actions {

/// Told by default like any other, over whatever other route still works.
std::span<const core::OwnIssue> own_issues() noexcept;

enum class ActionIssue : std::uint8_t {
  delivery_dead,
  delivery_config,
  delivery_parked,
  delivery_standing,
  delivery_recipient,
  stop_failed,
  stopped_by_hand,
  stop_waits,
  stop_suspect,
  adjusted,
  adjust_failed,
  count
};

const core::OwnIssue& own_issue(ActionIssue which) noexcept;

/// Is the issue of this rule that one?
inline bool is(std::string_view rule, ActionIssue which) noexcept {
  return rule == own_issue(which).name;
}

/// One of these issues, none of a user's rule: it asks a run for nothing.
bool is_own_issue(std::string_view rule) noexcept;

}  // namespace tocsin::actions
