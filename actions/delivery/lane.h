// One lane: what waits for one integration, and what is known of its far side. Internal to actions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actions/contract/message_fault.h"
#include "actions/delivery/delivery_lanes.h"
#include "actions/delivery/delivery_stand.h"
#include "actions/delivery/delivery_trouble.h"
#include "actions/delivery/head_index.h"
#include "actions/delivery/item.h"
#include "actions/delivery/lane_probe.h"
#include "actions/delivery/pacing.h"
#include "actions/delivery/remembered.h"
#include "core/telemetry.h"
#include "core/time.h"

namespace tocsin::actions {

struct Lane {
  Lane(LaneOptions lane_options, core::Telemetry& telemetry, std::size_t lane_number)
      : options(std::move(lane_options)),
        number(lane_number),
        bucket(options.common.rate_limit),
        breaker(options.common.breaker),
        width(options.common.concurrency),
        probe(telemetry, options),
        stand(options.common.standing_after),
        trouble(options.integration, options.cluster) {}

  LaneOptions options;
  std::size_t number;  // place among the lanes
  TokenBucket bucket;
  Breaker breaker;
  LaneWidth width;
  LaneProbe probe;
  DeliveryStand stand;
  DeliveryTrouble trouble;
  std::map<std::string, std::deque<Item>> groups;  // by group key; none is empty
  std::map<std::string, HandleList> incidents;        // far-side ids of open incidents, by group key
  HeadIndex index;   // of groups whose first message was not tried yet
  HeadIndex failed;  // of the others: they never keep the first ones waiting
  std::set<std::uint64_t> failed_under_way;      // tickets
  bool splitting = false;                        // a digest was not taken: its halves are tried
  std::uint32_t turn = 0;                        // of both kinds, when both are due
  std::uint64_t arrived = 0;                     // messages delivered
  std::uint32_t throttled = 0;                   // times in a row
  std::string said_gone;                         // who was told last that the far side is gone
  std::set<std::string> parked;                  // notification ids
  std::map<std::string, std::uint32_t> put_off;  // recipients, deliveries of their own
  std::optional<core::WallTime> armed;           // when the lane is looked at again by itself
  Remembered unopened;                           // groups whose open was never delivered
  std::set<std::pair<core::WallTime, std::uint64_t>> ages;  // decided at, ticket: of what waits
  core::WallTime paused_until{};                            // the far side asked for it
  core::Duration restored_pause{};                          // length of a pause read back
  std::string disabled;  // why nothing is sent any more (410 gone)
  std::uint32_t in_flight = 0;
  std::size_t waiting = 0;  // notifications without a final state

  /// What may start now: the groups whose first messages make one attempt; none: nothing may.
  [[nodiscard]] std::vector<std::string> choose(core::WallTime now);
  /// Attempts that may be under way of messages that failed before.
  [[nodiscard]] std::size_t failed_width() const {
    return std::max<std::size_t>(1, width.now() / 2);
  }
  /// When something may happen that no finished attempt announces; nullopt: never by itself.
  [[nodiscard]] std::optional<core::WallTime> wake(core::WallTime now);

 private:
  [[nodiscard]] std::string one(core::WallTime now);
  [[nodiscard]] std::string probe_of(core::WallTime now);
  [[nodiscard]] std::vector<std::string> digest(core::WallTime now);
};

}  // namespace tocsin::actions
