#include "actions/delivery/own_deliveries.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "actions/contract/message_fault.h"
#include "actions/delivery/pacing.h"

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

void OwnDeliveries::spawn(Lane& lane, const Item& parent, const std::string& recipient,
                          WallTime now) {
  core::Notification own = *parent.notification;
  own.notification_id = id_for(own.notification_id, recipient);
  own.group_key += " to " + recipient;
  own.handles.clear();
  Item item;
  item.replay = parent.replay;
  item.from = parent.from;
  item.rank = parent.rank;
  item.expires = parent.expires;
  item.only_to = recipient;
  item.failures = 1;
  item.not_before = now + backoff(lane.options.common.retry, item.failures, random_());
  item.notification = std::make_shared<core::Notification>(std::move(own));
  if (known_.has(known_as(item))) return;
  admission_.admit(lane, item, now);
  lane.put_off.began(recipient);
  const std::string group = item.notification->group_key;
  lane.queue.push(std::move(item));
  backlog_.merge(lane, group, now);
}

void OwnDeliveries::settled(Lane& lane, const Item& item, const core::Delivery& record,
                            WallTime now) {
  // Read only where somebody was missed: the issues of a message that arrived stay packed.
  std::optional<bool> whole;
  const auto of_others = [&] {
    if (whole) return *whole;
    const auto message = unpacked(item.notification);
    whole = message->issues.empty() || !speaks_of_trouble_only(*message);
    return *whole;
  };
  std::set<std::string> missed;
  const bool late = now - item.enqueued >= lane.options.common.standing_after;
  const auto miss = [&](const std::string& recipient, const std::string& code, bool tell) {
    if (!missed.insert(recipient).second || !tell || !of_others()) return;
    log_.tell(lane.trouble.not_reached(recipient, code, record, now));
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
  log_.tell(lane.trouble.reached(item.only_to, missed, now));
}

}  // namespace tocsin::actions
