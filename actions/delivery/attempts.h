// Attempts from their start to their answer. Internal to actions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actions/delivery/backlog.h"
#include "actions/delivery/caller.h"
#include "actions/delivery/delivery_log.h"
#include "actions/delivery/item.h"
#include "actions/delivery/lane.h"
#include "actions/delivery/lane_agenda.h"
#include "actions/delivery/settlement.h"
#include "actions/delivery/tickets.h"
#include "core/action.h"
#include "core/time.h"

namespace tocsin::actions {

/// Its arguments outlive it.
class Attempts {
 public:
  Attempts(Tickets& tickets, LaneAgenda& agenda, Backlog& backlog, Settlement& settlement,
           DeliveryLog& log)
      : tickets_(tickets), agenda_(agenda), backlog_(backlog), settlement_(settlement), log_(log) {}

  /// The lane's most urgent attempt that may start now; nullopt: none may.
  std::optional<Attempt> start(Lane& lane, core::WallTime now);
  void finished(Lane& lane, const Attempt& attempt, const core::AttemptOutcome& outcome,
                core::WallTime now);
  /// It was never carried out.
  void not_started(Lane& lane, const Attempt& attempt, core::WallTime now);

 private:
  Attempt of_one(const Lane& lane, const Item& item) const;
  Attempt of_many(const Lane& lane, const std::vector<Item*>& items);

  Tickets& tickets_;
  LaneAgenda& agenda_;
  Backlog& backlog_;
  Settlement& settlement_;
  DeliveryLog& log_;
  std::map<std::uint64_t, std::vector<std::string>> digests_;  // ticket → groups whose heads it has
};

}  // namespace tocsin::actions
