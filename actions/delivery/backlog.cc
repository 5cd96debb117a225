#include "actions/delivery/backlog.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actions/contract/message_fault.h"
#include "actions/delivery/coalesce.h"
#include "actions/delivery/delivery_record.h"

namespace tocsin::actions {

using core::Delivery;
using core::DeliveryState;
using core::NotificationKind;
using core::WallTime;

void Backlog::changed(Lane& lane, const std::string& group) {
  agenda_.changed(lane.number);
  lane.queue.index(group);
}

void Backlog::add(Lane& lane, Item item, WallTime now) {
  const std::string group = item.notification->group_key;
  if (lane.queue.find(group) == nullptr && joins_unopened(lane, item, now)) return;
  lane.queue.push(std::move(item));
  merge(lane, group, now);
}

void Backlog::merge(Lane& lane, const std::string& group, WallTime now) {
  LaneQueue::Group* const waiting = lane.queue.find(group);
  if (waiting == nullptr) return;
  if (lane.options.traits.coalesce && lane.options.traits.every_issue) {
    for (const Superseded& old : coalesce_by_issue(*waiting)) {
      const std::string why = "newer messages tell of its issues, the last is " + old.successor;
      endings_.end(lane, old.item,
                   end_record(old.item, DeliveryState::superseded, "superseded", why), now);
    }
  }
  if (lane.options.traits.one_incident()) {
    for (const Superseded& old : coalesce(*waiting)) {
      const bool dropped = old.successor.empty();
      Delivery record = end_record(
          old.item, DeliveryState::superseded, dropped ? "never_announced" : "superseded",
          dropped ? "over before it could be told" : "superseded by " + old.successor);
      if (!dropped) record.handles.emplace_back(kept::kSupersededBy, old.successor);
      endings_.end(lane, old.item, std::move(record), now);
    }
  }
  changed(lane, group);
  lane.probe.pending(lane.queue.waiting());
}

// The far side keeps state and never heard of the incident: an update becomes the open, a close has
// nothing to close. True: the item was such a close and has its final state.
bool Backlog::joins_unopened(Lane& lane, Item& item, WallTime now) {
  if (!lane.far_side.forget_unopened(item.notification->group_key)) return false;
  if (item.notification->kind == NotificationKind::close) {
    endings_.end(lane, item,
                 end_record(item, DeliveryState::superseded, "never_announced",
                            "its incident was never opened at the far side"),
                 now);
    return true;
  }
  if (item.notification->kind != NotificationKind::open) {
    auto opens = std::make_shared<core::Notification>(*item.notification);
    opens->kind = NotificationKind::open;
    opens->rendered.clear();  // was written as an update
    item.notification = std::move(opens);
  }
  return false;
}

void Backlog::after_unopened(Lane& lane, const std::string& group, WallTime now) {
  LaneQueue::Group* const waiting = lane.queue.find(group);
  if (waiting == nullptr) return;
  while (!waiting->empty() && !waiting->front().in_flight && lane.far_side.unopened(group)) {
    if (!joins_unopened(lane, waiting->front(), now)) break;
    waiting->pop_front();
  }
}

void Backlog::ended(Lane& lane, const std::string& group, WallTime now) {
  after_unopened(lane, group, now);
  changed(lane, group);
}

void Backlog::expire(Lane& lane, WallTime now) {
  while (const std::string* const first = lane.queue.expired(now)) {
    const std::string group = *first;
    for (const Item& item : lane.queue.take_expired(group, now)) {
      const std::string why =
          "not delivered within max_age, after " + std::to_string(item.attempts) + " attempts";
      endings_.end(lane, item, end_record(item, DeliveryState::expired, "expired", why), now);
    }
    ended(lane, group, now);
  }
}

void Backlog::give_up(Lane& lane, WallTime now) {
  std::vector<std::string> groups;
  for (const Item& item : lane.queue.take_all(groups)) {
    endings_.end(lane, item,
                 end_record(item, DeliveryState::dead, "disabled", lane.pace.switched_off()), now);
  }
  for (const std::string& group : groups) changed(lane, group);
}

}  // namespace tocsin::actions
