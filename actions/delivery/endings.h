// How the delivery of a message ends. Internal to actions.
#pragma once

#include "actions/delivery/delivery_log.h"
#include "actions/delivery/item.h"
#include "actions/delivery/known_notifications.h"
#include "actions/delivery/lane.h"
#include "core/notification.h"
#include "core/time.h"

namespace tocsin::actions {

/// Its arguments outlive it.
class Endings {
 public:
  Endings(KnownNotifications& known, DeliveryLog& log) : known_(known), log_(log) {}

  /// The item, which no group of the lane has any more, has the final state of its record.
  void end(Lane& lane, const Item& item, core::Delivery record, core::WallTime now);

 private:
  void tell_lost(Lane& lane, const core::Notification& notification, const core::Delivery& record,
                 core::WallTime now);

  KnownNotifications& known_;
  DeliveryLog& log_;
};

}  // namespace tocsin::actions
