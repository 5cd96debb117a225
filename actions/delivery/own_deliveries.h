// A recipient that does not get what the others get is a delivery of its own. Internal to actions.
#pragma once

#include <string>

#include "actions/delivery/admission.h"
#include "actions/delivery/backlog.h"
#include "actions/delivery/delivery_lanes.h"
#include "actions/delivery/delivery_log.h"
#include "actions/delivery/item.h"
#include "actions/delivery/known_notifications.h"
#include "actions/delivery/lane.h"
#include "core/notification.h"
#include "core/time.h"

namespace tocsin::actions {

/// It has its own back-off, records and end: others never wait for it. Arguments outlive it.
class OwnDeliveries {
 public:
  OwnDeliveries(const DeliveryLanes::Random& random, const KnownNotifications& known,
                Admission& admission, Backlog& backlog, DeliveryLog& log)
      : random_(random), known_(known), admission_(admission), backlog_(backlog), log_(log) {}

  /// Delivers `parent` to one recipient. Nothing where that is known already.
  void spawn(Lane& lane, const Item& parent, const std::string& recipient, core::WallTime now);
  /// Tells of recipients that an attempt did not reach, and of those that it reached again.
  void settled(Lane& lane, const Item& item, const core::Delivery& record, core::WallTime now);

 private:
  const DeliveryLanes::Random& random_;
  const KnownNotifications& known_;
  Admission& admission_;
  Backlog& backlog_;
  DeliveryLog& log_;
};

}  // namespace tocsin::actions
