#include "actions/delivery/item.h"

#include "actions/contract/delivery_marks.h"
#include "core/fields/outbox.h"

namespace tocsin::actions {

using core::NotificationKind;
using core::Severity;
using core::WallTime;

namespace {

std::string known_as_replay(const std::string& notification, std::string_view replay) {
  return replay.empty() ? notification : notification + " " + std::string(replay);
}

}  // namespace

std::string known_as(const Item& item) {
  return known_as_replay(item.notification->notification_id, item.replay);
}

std::string known_as(const core::Delivery& delivery) {
  return known_as_replay(delivery.notification_id, replay_of(delivery));
}

int rank_of(const core::Notification& notification) {
  return notification.kind == NotificationKind::close
             ? static_cast<int>(Severity::critical) + 1
             : static_cast<int>(core::worst_of(notification));
}

WallTime expiry_of(const core::Notification& notification, const CommonConfig& cfg) {
  if (notification.expires_at != WallTime{}) return notification.expires_at;
  return notification.decided_at +
         (notification.kind == NotificationKind::close ? cfg.max_age_close : cfg.max_age);
}

std::shared_ptr<const core::Notification> unpacked(
    const std::shared_ptr<const core::Notification>& notification) {
  if (!notification->packed) return notification;
  auto out = std::make_shared<core::Notification>(*notification);
  // What cannot be read lists nothing: the message as it was rendered is still good.
  if (!core::unpack(*out)) out->packed.reset();
  return out;
}

std::shared_ptr<core::Notification> short_form(const core::Notification& notification) {
  auto out = std::make_shared<core::Notification>(notification);
  out->minimal = true;
  out->rendered.clear();
  return out;
}

}  // namespace tocsin::actions
