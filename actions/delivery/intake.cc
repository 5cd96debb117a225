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

void Intake::take(Lane* lane, core::Notification notification,
                  const std::optional<core::Position>& from, WallTime now) {
  if (known_.has(notification.notification_id)) {
    log_.pass(from);
    if (lane != nullptr) deliver_owed(*lane, std::move(notification), from, now);
    return;
  }
  if (before_.take_promotion(notification.notification_id)) {
    notification.kind = NotificationKind::open;
    notification.rendered.clear();
  }
  if (lane == nullptr) return without_lane(std::move(notification), from);
  lane->pace.not_longer_than_meant(now);
  lane->stand.not_later_than(now);
  const CommonConfig& common = lane->options.common;
  Item item;
  item.from = from;
  item.expires = expiry_of(notification, common);
  item.rank = rank_of(notification);
  item.notification = std::make_shared<core::Notification>(std::move(notification));
  admission_.admit(*lane, item, now);
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
  backlog_.add(*lane, std::move(item), now);
}

void Intake::without_lane(core::Notification notification,
                          const std::optional<core::Position>& from) {
  Item item;
  item.notification = std::make_shared<core::Notification>(std::move(notification));
  log_.record(end_record(item, DeliveryState::cancelled, "no_integration",
                         "the configuration has no integration of this id any more"));
  known_.finish(item.notification->notification_id);
  log_.pass(from);
}

// The notification is finished; its record promised some recipients deliveries of their own.
void Intake::deliver_owed(Lane& lane, core::Notification notification,
                          const std::optional<core::Position>& from, WallTime now) {
  const auto recipients = before_.take_owed(notification.notification_id);
  const CommonConfig& common = lane.options.common;
  if (recipients.empty() || !lane.pace.switched_off().empty()) return;
  if (!common.enabled || common.shadow) return;
  Item parent;
  parent.from = from;
  parent.rank = rank_of(notification);
  parent.expires = expiry_of(notification, common);
  parent.notification = std::make_shared<core::Notification>(std::move(notification));
  for (const std::string& recipient : recipients)
    own_deliveries_.spawn(lane, parent, recipient, now);
}

}  // namespace tocsin::actions
