// What an outcome means for a message. Internal to actions.
#pragma once

#include <cstddef>

#include "actions/delivery/delivery_lanes.h"
#include "actions/delivery/item.h"
#include "actions/delivery/lane.h"
#include "core/action.h"
#include "core/notification.h"
#include "core/time.h"

namespace tocsin::actions {

/// It is tried again, then and in that form, or it ends. `random` outlives it.
class OutcomeJudge {
 public:
  explicit OutcomeJudge(const DeliveryLanes::Random& random) : random_(random) {}

  /// The item's state after an attempt that told of `members` messages. If pending, the item says when
  /// and how it is tried again.
  core::DeliveryState judge(Lane& lane, Item& item, std::size_t members,
                            const core::AttemptOutcome& outcome, core::WallTime now) const;

 private:
  core::DeliveryState judge_throttle(Lane& lane, Item& item, core::Duration hint,
                                     core::WallTime now) const;

  const DeliveryLanes::Random& random_;
};

}  // namespace tocsin::actions
