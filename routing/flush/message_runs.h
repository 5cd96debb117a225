// What a message says of the runs of its issues: how they stand, what was done about them, and where
// their pages lie.
#pragma once

#include "core/notification.h"
#include "routing/tables/runs.h"

namespace tocsin::routing {

void add_runs(core::Notification& notification, const Runs& runs);

}  // namespace tocsin::routing
