// What becomes of messages while they wait. Internal to actions.
#pragma once

#include <string>

#include "actions/delivery/endings.h"
#include "actions/delivery/item.h"
#include "actions/delivery/lane.h"
#include "actions/delivery/lane_agenda.h"
#include "core/time.h"

namespace tocsin::actions {

/// They are merged, open or close incidents that the far side never heard of, become too old, or are
/// given up with their lane. Its arguments outlive it.
class Backlog {
 public:
  Backlog(LaneAgenda& agenda, Endings& endings) : agenda_(agenda), endings_(endings) {}

  /// The item waits behind those of its group, or ends with one of them.
  void add(Lane& lane, Item item, core::WallTime now);
  /// Merges what waits in the group.
  void merge(Lane& lane, const std::string& group, core::WallTime now);
  /// The group's first message has ended.
  void ended(Lane& lane, const std::string& group, core::WallTime now);
  /// The group has changed in no other way than that its first message is under way.
  void started(Lane& lane, const std::string& group) { changed(lane, group); }
  /// Ends what is too old.
  void expire(Lane& lane, core::WallTime now);
  /// Ends all that is not under way, as nothing is sent any more: LanePace::switched_off().
  void give_up(Lane& lane, core::WallTime now);

 private:
  void changed(Lane& lane, const std::string& group);
  bool joins_unopened(Lane& lane, Item& item, core::WallTime now);
  void after_unopened(Lane& lane, const std::string& group, core::WallTime now);

  LaneAgenda& agenda_;
  Endings& endings_;
};

}  // namespace tocsin::actions
