// What records of deliveries say beside their outcome, for those who read the log. Part of the door.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/notification.h"

namespace tocsin::actions {

/// Header of an outbox record that sends a notification again: the id of that request.
inline constexpr std::string_view kReplayHeader = "replay";

/// The replay that the record belongs to; empty: to the notification as it was decided.
std::string_view replay_of(const core::Delivery& delivery);
/// Recipients that get this message by deliveries of their own: each has final states of its own, under
/// the id "<notification>/<recipient>".
std::vector<std::string> recipients_owed(const core::Delivery& delivery);
/// Without the recipient of a delivery of its own: the notification's id.
std::string_view notification_of(const core::Delivery& delivery);

}  // namespace tocsin::actions
