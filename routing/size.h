// How large things get as JSON, near enough to bound messages and transactions before they are
// made.
#pragma once

#include <cstddef>

#include "core/issue.h"
#include "core/notification.h"

namespace tocsin::routing {

/// Of one issue; linear in what it holds.
std::size_t approximate_bytes(const core::Issue& issue);
/// Of all issues that a notification lists.
std::size_t approximate_bytes(const core::Notification& notification);

}  // namespace tocsin::routing
