// What the answer to an attempt comes to for one message. Internal to actions.
#pragma once

#include <cstddef>
#include <string>

#include "actions/delivery/backlog.h"
#include "actions/delivery/caller.h"
#include "actions/delivery/delivery_lanes.h"
#include "actions/delivery/delivery_log.h"
#include "actions/delivery/endings.h"
#include "actions/delivery/item.h"
#include "actions/delivery/lane.h"
#include "actions/delivery/outcome_judge.h"
#include "actions/delivery/own_deliveries.h"
#include "core/action.h"
#include "core/notification.h"
#include "core/time.h"

namespace tocsin::actions {

/// Its arguments outlive it.
class Settlement {
 public:
  Settlement(const DeliveryLanes::Random& random, Backlog& backlog, Endings& endings,
             OwnDeliveries& own_deliveries, DeliveryLog& log)
      : judge_(random),
        backlog_(backlog),
        endings_(endings),
        own_deliveries_(own_deliveries),
        log_(log) {}

  /// The group's message that is under way was told by the attempt, one of `members`.
  void settle(Lane& lane, const std::string& group, const Attempt& attempt, std::size_t members,
              const core::AttemptOutcome& outcome, core::WallTime now);

 private:
  void end(Lane& lane, const std::string& group, core::Delivery record, core::WallTime now);
  void tell(Lane& lane, const Item& item, const core::Delivery& record,
            const core::AttemptOutcome& outcome, core::WallTime now);

  OutcomeJudge judge_;
  Backlog& backlog_;
  Endings& endings_;
  OwnDeliveries& own_deliveries_;
  DeliveryLog& log_;
};

}  // namespace tocsin::actions
