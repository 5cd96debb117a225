#include "actions/delivery/intake.h"

#include <memory>
#include <string>
#include <utility>

#include "actions/delivery/delivery_record.h"

namespace tocsin::actions {

using core::Delivery;
using core::DeliveryState;
using core::NotificationKind;
using core::WallTime;

void Intake::take(Lane* lane, core::Notification notification, const Source& source, WallTime now) {
  Item item;
  item.from = source.from;
  item.replay = source.replay;
  item.rank = rank_of(notification);
  item.notification = std::make_shared<core::Notification>(std::move(notification));
  if (known_.has(known_as(item))) {
    log_.pass(source.from);
    if (lane != nullptr) deliver_owed(*lane, std::move(item), now);
    return;
  }
  if (before_.take_promotion(item.notification->notification_id)) {
    item.notification->kind = NotificationKind::open;
    item.notification->rendered.clear();
  }
  if (lane == nullptr) return without_lane(std::move(item));
  lane->pace.not_longer_than_meant(now);
  lane->stand.not_later_than(now);
  const CommonConfig& common = lane->options.common;
  item.expires = expiry_of(*item.notification, common);
  admission_.admit(*lane, item, now);
  if (!item.replay.empty()) lane->probe.replayed();
  if (!common.enabled || common.shadow) {
    const bool shadow = common.enabled;
    Delivery record = end_record(
        item, DeliveryState::cancelled, shadow ? "shadow" : "not_enabled",
        shadow ? "shadow: decided and recorded, not sent" : "enabled: false in the configuration");
    return endings_.end(*lane, item, std::move(record), now);
  }
  if (const std::string& why = lane->pace.switched_off(); !why.empty()) {
    return endings_.end(*lane, item, end_record(item, DeliveryState::dead, "disabled", why), now);
  }
  if (behind_newer(*lane, item, now)) return;
  backlog_.add(*lane, std::move(item), now);
}

// A replay tells what was; what waits in its group was decided since.
bool Intake::behind_newer(Lane& lane, const Item& item, WallTime now) {
  if (item.replay.empty() || lane.options.traits.every_issue) return false;
  const LaneQueue::Group* const waiting = lane.queue.find(item.notification->group_key);
  if (waiting == nullptr || waiting->empty()) return false;
  const std::string& newer = waiting->back().notification->notification_id;
  endings_.end(lane, item,
               end_record(item, DeliveryState::superseded, "superseded",
                          "a newer message of its incident waits: " + newer),
               now);
  return true;
}

void Intake::without_lane(Item item) {
  log_.record(end_record(item, DeliveryState::cancelled, "no_integration",
                         "the configuration has no integration of this id any more"));
  known_.finish(known_as(item));
  log_.pass(item.from);
}

// The notification is finished; its record promised some recipients deliveries of their own.
void Intake::deliver_owed(Lane& lane, Item parent, WallTime now) {
  const auto recipients = before_.take_owed(known_as(parent));
  const CommonConfig& common = lane.options.common;
  if (recipients.empty() || !lane.pace.switched_off().empty()) return;
  if (!common.enabled || common.shadow) return;
  parent.expires = expiry_of(*parent.notification, common);
  for (const std::string& recipient : recipients)
    own_deliveries_.spawn(lane, parent, recipient, now);
}

}  // namespace tocsin::actions
