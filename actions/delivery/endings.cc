#include "actions/delivery/endings.h"

#include <string>
#include <utility>
#include <vector>

namespace tocsin::actions {

using core::Delivery;
using core::DeliveryState;
using core::NotificationKind;
using core::WallTime;

void Endings::end(Lane& lane, const Item& item, Delivery record, WallTime now) {
  const DeliveryState state = record.state;
  lane.probe.finished(state);
  if (state == DeliveryState::dead) lane.probe.dead(record.outcome);
  lane.queue.left(item);
  const core::Notification& notification = *item.notification;
  const std::string& id = notification.notification_id;
  if (!item.only_to.empty()) lane.put_off.ended(item.only_to);
  if (lane.parked.erase(id) > 0 && lane.parked.empty()) log_.tell(lane.trouble.unparked(now));
  const bool lost = state == DeliveryState::dead || state == DeliveryState::expired;
  if (lost) {
    tell_lost(lane, *unpacked(item.notification), record, now);
    log_.bury(item.notification, record);
  }
  log_.record(std::move(record));
  if (lost && notification.kind == NotificationKind::open && !item.maybe_announced &&
      lane.options.traits.one_incident()) {
    lane.far_side.never_opened(notification.group_key);
  }
  known_.finish(known_as(item));
  log_.close(item.from);
  lane.probe.pending(lane.queue.waiting());
}

// What an action says itself of what it lost is more than that a message was lost.
void Endings::tell_lost(Lane& lane, const core::Notification& notification, const Delivery& record,
                        WallTime now) {
  std::vector<core::Issue> told;
  if (lane.options.config != nullptr) {
    told = lane.options.config->abandoned(notification, record.state, lane.options.cluster, now);
  }
  if (told.empty()) {
    log_.tell(lane.trouble.given_up(notification, record, now));
  } else {
    log_.tell(std::move(told));
  }
}

}  // namespace tocsin::actions
