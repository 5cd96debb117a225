// How a message begins to wait. Internal to actions.
#pragma once

#include "actions/delivery/before_restart.h"
#include "actions/delivery/delivery_log.h"
#include "actions/delivery/item.h"
#include "actions/delivery/known_notifications.h"
#include "actions/delivery/lane.h"
#include "actions/delivery/tickets.h"
#include "core/time.h"

namespace tocsin::actions {

/// Its arguments outlive it.
class Admission {
 public:
  Admission(Tickets& tickets, BeforeRestart& before, KnownNotifications& known, DeliveryLog& log)
      : tickets_(tickets), before_(before), known_(known), log_(log) {}

  /// From now on the lane counts the item, which goes on where it was before the restart.
  void admit(Lane& lane, Item& item, core::WallTime now) {
    item.ticket = tickets_.next();
    item.enqueued = now;
    log_.open(item.from);
    known_.wait(known_as(item));
    lane.queue.entered(item);
    before_.recall(item, now);
    if (item.fault.parked()) lane.parked.insert(item.notification->notification_id);
  }

 private:
  Tickets& tickets_;
  BeforeRestart& before_;
  KnownNotifications& known_;
  DeliveryLog& log_;
};

}  // namespace tocsin::actions
