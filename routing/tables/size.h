// How large things get as JSON, near enough to bound messages and transactions before they are
// made.
#pragma once

#include <cstddef>

#include "core/issue.h"
#include "core/notification.h"

namespace tocsin::routing {

/// Of the issues in one message: it must fit into a record together with its rendered form.
inline constexpr std::size_t kMaxMessageBytes = std::size_t{320} * 1024;

/// Of one issue; linear in what it holds.
std::size_t approximate_bytes(const core::Issue& issue);
/// Of all issues that a notification lists.
/// Of a run in a message.
std::size_t approximate_bytes(const core::RunTold& run);
std::size_t approximate_bytes(const core::Notification& notification);

}  // namespace tocsin::routing
