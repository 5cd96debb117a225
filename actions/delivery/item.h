// One message that waits in a lane. Internal to actions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "actions/contract/common_config.h"
#include "actions/contract/message_fault.h"
#include "core/notification.h"
#include "core/record.h"
#include "core/time.h"

namespace tocsin::actions {

/// One undelivered notification.
struct Item {
  std::shared_ptr<core::Notification> notification;
  std::uint64_t ticket = 0;
  std::optional<core::Position> from;
  core::WallTime enqueued{};
  core::WallTime expires{};
  core::WallTime not_before{};
  int rank = 0;                // rank_of() the notification
  std::uint32_t attempts = 0;  // of this notification id
  std::uint32_t failures = 0;  // in a row, also of what this one superseded: back-off
  MessageFault fault;          // whether it fails while others arrive
  std::uint32_t together = 0;  // at most so many in one digest; 0: any number, 1: none
  std::string only_to;         // the recipient that this delivery is for; empty: all
  std::string replay;          // the request that sends it again; empty: as it was decided
  bool in_flight = false;
  bool maybe_announced = false;  // an attempt ended unknown: the far side may have it
  std::optional<core::WallTime> misconfigured_since;
};

/// What is delivered once: the notification, and each replay of it.
std::string known_as(const Item& item);
std::string known_as(const core::Delivery& delivery);

/// Waiting order: close > critical > error > warning > info.
int rank_of(const core::Notification& notification);
/// When the notification is too old to be sent.
core::WallTime expiry_of(const core::Notification& notification, const CommonConfig& cfg);

/// It failed before, or is for a recipient that others do not wait for.
inline bool tried(const Item& item) { return item.failures > 0 || !item.only_to.empty(); }

/// The notification with its issues read from the outbox's form; itself when they are.
std::shared_ptr<const core::Notification> unpacked(
    const std::shared_ptr<const core::Notification>& notification);

/// The same message in its short form, to be rendered anew.
std::shared_ptr<core::Notification> short_form(const core::Notification& notification);

}  // namespace tocsin::actions
