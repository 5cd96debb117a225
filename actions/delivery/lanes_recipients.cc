// A recipient that does not get what the others get is a delivery of its own: its back-off, its
// records, its end. Others never wait for it.
#include <algorithm>
#include <iterator>

#include "actions/delivery/lanes_state.h"

namespace tocsin::actions {

using core::OutcomeClass;
using core::WallTime;

namespace {

std::string id_for(const std::string& notification, const std::string& recipient) {
  return notification + "/" + recipient;
}

// "<address> <code>"
std::pair<std::string, std::string> named(const std::string& handle) {
  const std::size_t space = handle.find(' ');
  return {handle.substr(0, space), space == std::string::npos ? "" : handle.substr(space + 1)};
}

}  // namespace

// The delivery of `parent` to one recipient. Nothing where it is known already.
void DeliveryLanes::State::spawn(Lane& lane, const Item& parent, const std::string& recipient) {
  core::Notification own = *parent.notification;
  own.notification_id = id_for(own.notification_id, recipient);
  own.group_key += " to " + recipient;
  own.handles.clear();
  if (ids.has(own.notification_id)) return;
  Item item;
  item.ticket = ++last_ticket;
  item.from = parent.from;
  item.enqueued = called_at;
  item.rank = parent.rank;
  item.expires = parent.expires;
  item.only_to = recipient;
  item.failures = 1;
  item.not_before = called_at + backoff(lane.options.common.retry, item.failures, random());
  log.open(item.from);
  ids.wait(own.notification_id);
  ++lane.waiting;
  lane.ages.emplace(own.decided_at, item.ticket);
  ++lane.put_off[recipient];
  const std::string group = own.group_key;
  item.notification = std::make_shared<core::Notification>(std::move(own));
  recall(item);
  lane.groups[group].push_back(std::move(item));
  merge(lane, group);
}

// What the records before the restart promised to recipients of a notification that is finished.
void DeliveryLanes::State::spawn_owed(const core::Notification& notification,
                                      const std::optional<core::Position>& from) {
  const auto recipients = before.take_owed(notification.notification_id);
  const auto lane = lanes.find(notification.integration);
  if (recipients.empty() || lane == lanes.end() || !lane->second.disabled.empty()) return;
  const CommonConfig& common = lane->second.options.common;
  if (!common.enabled || common.shadow) return;
  Item parent;
  parent.from = from;
  parent.rank = rank_of(notification);
  parent.expires = expiry_of(notification, common);
  parent.notification = std::make_shared<core::Notification>(notification);
  for (const std::string& recipient : recipients) spawn(lane->second, parent, recipient);
}

// Which recipients an attempt did not reach, and which it reached again.
void DeliveryLanes::State::recipients_settled(Lane& lane, const Item& item,
                                              const core::Delivery& record, WallTime now) {
  const bool whole = unpacked(item.notification)->issues.empty() ||
                     !speaks_of_trouble_only(*unpacked(item.notification));
  std::set<std::string> missed;
  const bool late = now - item.enqueued >= lane.options.common.standing_after;
  const auto miss = [&](const std::string& recipient, const std::string& code, bool tell) {
    if (!missed.insert(recipient).second || !whole || !tell) return;
    log.tell(lane.trouble.not_reached(recipient, code, record, now));
  };
  for (const std::string& value : values_of(record.handles, kept::kRefused)) {
    const auto [recipient, code] = named(value);
    miss(recipient, code, true);
  }
  for (const std::string& value : values_of(record.handles, kept::kPutOff)) {
    const auto [recipient, code] = named(value);
    miss(recipient, code, late && item.only_to == recipient);
  }
  const bool arrived = record.outcome == OutcomeClass::delivered;
  if (!item.only_to.empty() && !arrived) miss(item.only_to, "", late);
  if (!arrived) return;
  log.tell(lane.trouble.reached(item.only_to, missed, now));
}

}  // namespace tocsin::actions
