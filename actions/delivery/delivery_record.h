// Records of deliveries, as the topic `router-deliveries` has them. Internal to actions.
#pragma once

#include <string>

#include "actions/delivery/caller.h"
#include "actions/delivery/item.h"
#include "core/action.h"
#include "core/notification.h"
#include "core/time.h"

namespace tocsin::actions {

/// Of the notification, attempt 0: of no attempt yet.
core::Delivery record_of(const core::Notification& notification);

/// Of an attempt that told of the item, perhaps among others.
core::Delivery attempt_record(const Item& item, const Attempt& attempt,
                              const core::AttemptOutcome& outcome, core::WallTime now);

/// Of an end that no attempt came to; `detail` is shortened.
core::Delivery end_record(const Item& item, core::DeliveryState state, std::string code,
                          std::string detail);

/// Adds what a later start has to know of a failure, and whom people ask about it.
void keep_fault(core::Delivery& record, const Item& item, const core::AttemptOutcome& outcome);

}  // namespace tocsin::actions
