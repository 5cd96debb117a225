// The state behind DeliveryLanes. Internal to actions.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actions/delivery/before_restart.h"
#include "actions/delivery/delivery_lanes.h"
#include "actions/delivery/delivery_log.h"
#include "actions/delivery/known_notifications.h"
#include "actions/delivery/lane.h"

namespace tocsin::actions {

/// A delivery record of the notification, attempt 0: of no attempt yet.
core::Delivery record_of(const core::Notification& notification);

struct DeliveryLanes::State {
  std::map<std::string, Lane, std::less<>> lanes;
  std::vector<Lane*> numbered;
  std::set<std::size_t> changed;                            // lanes next() has to look at
  std::set<std::pair<core::WallTime, std::size_t>> timers;  // when it has to look by itself
  Random random;
  core::WallTime called_at{};  // of the call under way
  std::uint64_t last_ticket = 0;
  KnownNotifications ids;
  BeforeRestart before;
  DeliveryLog log;
  std::map<std::uint64_t, std::vector<std::string>> digests;  // ticket → groups whose heads it has

  void end(Lane& lane, const Item& item, core::Delivery record, core::DeliveryState state);
  void tell_lost(Lane& lane, const core::Notification& notification, const core::Delivery& record);
  void end_without_attempt(Lane& lane, const Item& item, core::DeliveryState state,
                           std::string code, std::string detail);
  void merge(Lane& lane, const std::string& group);
  void reindex(Lane& lane, const std::string& group);
  void recall(Item& item);
  void spawn(Lane& lane, const Item& parent, const std::string& recipient);
  void spawn_owed(const core::Notification& notification,
                  const std::optional<core::Position>& from);
  void recipients_settled(Lane& lane, const Item& item, const core::Delivery& record,
                          core::WallTime now);
  void restore_final(Lane* lane, const core::Delivery& delivery);
  void restore_pending(Lane* lane, const core::Delivery& delivery);
  void arm(Lane& lane, std::optional<core::WallTime> at);
  void expire(Lane& lane, core::WallTime now);
  void expire(Lane& lane, const std::string& group, core::WallTime now);
  void disable(Lane& lane, const std::string& why);
  bool joins_unopened(Lane& lane, Item& item);
  void after_unopened(Lane& lane, const std::string& group);
  std::optional<Attempt> attempt_of(Lane& lane, core::WallTime now);
  std::optional<Attempt> start(Lane& lane, const std::vector<Item*>& items, core::WallTime now);
  void count(Lane& lane, const Attempt& attempt, const core::AttemptOutcome& outcome,
             core::WallTime now);
  void settle(Lane& lane, const std::string& group, const Attempt& attempt, std::size_t members,
              const core::AttemptOutcome& outcome, core::WallTime now);
  void told_of(Lane& lane, const Item& item, const core::Delivery& record,
               const core::AttemptOutcome& outcome, core::WallTime now);
  core::DeliveryState judge(Lane& lane, Item& item, std::size_t members,
                            const core::AttemptOutcome& outcome, core::WallTime now) const;
  core::DeliveryState judge_payload(Lane& lane, Item& item, std::size_t members,
                                    core::Duration hint, core::WallTime now) const;
  core::DeliveryState judge_throttle(Lane& lane, Item& item, core::Duration hint,
                                     core::WallTime now) const;
  void note_failure(Lane& lane, Item& item, std::size_t members,
                    const core::AttemptOutcome& outcome) const;
  void wait(Item& item, core::WallTime until, std::uint32_t max_attempts,
            core::DeliveryState& state) const;
};

}  // namespace tocsin::actions
