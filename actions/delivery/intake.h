// Notifications as they come from the outbox. Internal to actions.
#pragma once

#include <optional>

#include "actions/delivery/admission.h"
#include "actions/delivery/backlog.h"
#include "actions/delivery/before_restart.h"
#include "actions/delivery/delivery_log.h"
#include "actions/delivery/endings.h"
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

  /// `lane`: of the notification's integration; null: the configuration has it no more. `from`: where
  /// its record stands in the outbox.
  void take(Lane* lane, core::Notification notification, const std::optional<core::Position>& from,
            core::WallTime now);

 private:
  void deliver_owed(Lane& lane, core::Notification notification,
                    const std::optional<core::Position>& from, core::WallTime now);
  void without_lane(core::Notification notification, const std::optional<core::Position>& from);

  BeforeRestart& before_;
  KnownNotifications& known_;
  Admission& admission_;
  Endings& endings_;
  Backlog& backlog_;
  OwnDeliveries& own_deliveries_;
  DeliveryLog& log_;
};

}  // namespace tocsin::actions
