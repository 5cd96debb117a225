// What a lane knows after a restart, from the records of deliveries. Internal to actions.
#pragma once

#include "actions/delivery/before_restart.h"
#include "actions/delivery/lane.h"
#include "core/notification.h"

namespace tocsin::actions {

/// The record's attempt, if it has one, said this of the far side.
void restore_attempt(Lane& lane, const core::Delivery& delivery);
/// The notification waits; `retry`: what is known of it.
void restore_wait(Lane& lane, const core::Delivery& delivery, const Retry& retry);
/// The notification is finished; `maybe_announced`: perhaps the far side has it all the same.
void restore_end(Lane& lane, const core::Delivery& delivery, bool maybe_announced);

}  // namespace tocsin::actions
