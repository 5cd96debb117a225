// What people ask of a lane, and how it stands. Internal to actions.
#pragma once

#include "actions/contract/endpoint_order.h"
#include "actions/delivery/lane.h"
#include "core/time.h"

namespace tocsin::actions {

void obey(Lane& lane, const EndpointOrder& order, core::WallTime now);
EndpointStand stand_of(const Lane& lane);

}  // namespace tocsin::actions
