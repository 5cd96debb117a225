// What belongs to one integration: what waits for it, when it is sent, what its far side knows.
// Internal to actions.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <utility>

#include "actions/delivery/delivery_lanes.h"
#include "actions/delivery/delivery_stand.h"
#include "actions/delivery/delivery_trouble.h"
#include "actions/delivery/far_side.h"
#include "actions/delivery/lane_choice.h"
#include "actions/delivery/lane_pace.h"
#include "actions/delivery/lane_probe.h"
#include "actions/delivery/lane_queue.h"
#include "actions/delivery/put_off.h"
#include "core/telemetry.h"

namespace tocsin::actions {

struct Lane {
  Lane(LaneOptions lane_options, core::Telemetry& telemetry, std::size_t lane_number)
      : options(std::move(lane_options)),
        number(lane_number),
        probe(telemetry, options),
        pace(options.common),
        choice(options, pace, queue),
        stand(options.common.standing_after),
        trouble(options.integration, options.cluster) {}
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  const LaneOptions options;
  const std::size_t number;  // place among the lanes
  LaneProbe probe;
  LanePace pace;
  LaneQueue queue;
  LaneChoice choice;
  FarSide far_side;
  PutOff put_off;
  DeliveryStand stand;
  DeliveryTrouble trouble;
  std::set<std::string> parked;  // notification ids
};

}  // namespace tocsin::actions
