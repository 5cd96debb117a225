// One message for people that stands for many. Internal to actions.
#pragma once

#include <cstdint>
#include <vector>

#include "actions/delivery/item.h"
#include "core/notification.h"

namespace tocsin::actions {

/// People get one message for more than so many that wait.
inline constexpr std::size_t kDigestAbove = 20;

/// The worst of all their issues, at most `max_issues`, named after first and last.
core::Notification digest_of(const std::vector<Item*>& items, std::uint32_t max_issues);

/// The far side did not take a digest of so many: how many there are in the next. Halves find the
/// one that it cannot take.
constexpr std::uint32_t half_of(std::size_t members) {
  return static_cast<std::uint32_t>(members > 1 ? (members + 1) / 2 : 1);
}

}  // namespace tocsin::actions
