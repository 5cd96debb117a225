// Notifications as they come from the outbox. Internal to actions.
#pragma once

#include <optional>
#include <string>

#include "actions/delivery/admission.h"
#include "actions/delivery/backlog.h"
#include "actions/delivery/before_restart.h"
#include "actions/delivery/delivery_log.h"
#include "actions/delivery/endings.h"
#include "actions/delivery/item.h"
#include "actions/delivery/known_notifications.h"
#include "actions/delivery/lane.h"
#include "actions/delivery/own_deliveries.h"
#include "core/notification.h"
#include "core/record.h"
#include "core/time.h"

namespace tocsin::actions {

/// Its arguments outlive it.
class Intake {
 public:
  Intake(BeforeRestart& before, KnownNotifications& known, Admission& admission, Endings& endings,
         Backlog& backlog, OwnDeliveries& own_deliveries, DeliveryLog& log)
      : before_(before),
        known_(known),
        admission_(admission),
        endings_(endings),
        backlog_(backlog),
        own_deliveries_(own_deliveries),
        log_(log) {}

  /// What an outbox record says beside its notification.
  struct Source {
    std::optional<core::Position> from;  // where it stands
    std::string replay;                  // the request that sends it again
  };

  /// `lane`: of the notification's integration; null: the configuration has it no more.
  void take(Lane* lane, core::Notification notification, const Source& source, core::WallTime now);

 private:
  void deliver_owed(Lane& lane, Item parent, core::WallTime now);
  void without_lane(Item item);
  bool behind_newer(Lane& lane, const Item& item, core::WallTime now);

  BeforeRestart& before_;
  KnownNotifications& known_;
  Admission& admission_;
  Endings& endings_;
  Backlog& backlog_;
  OwnDeliveries& own_deliveries_;
  DeliveryLog& log_;
};

}  // namespace tocsin::actions
