// Records of what happened to messages, and what people are told of it.
#include <algorithm>
#include <iterator>

#include "actions/delivery/coalesce.h"
#include "actions/delivery/lanes_state.h"
#include "core/text.h"

namespace tocsin::actions {

using core::Delivery;
using core::DeliveryState;
using core::Duration;
using core::NotificationKind;
using core::OutcomeClass;
using core::WallTime;

namespace {

constexpr std::size_t kDetailBytes = 2048;

// At most `limit` bytes, cut at a code point.
std::string shortened(std::string text, std::size_t limit) {
  text.resize(core::cut_utf8(text, limit).size());
  return text;
}

}  // namespace

Delivery record_of(const core::Notification& notification) {
  Delivery out;
  out.notification_id = notification.notification_id;
  out.integration = notification.integration;
  out.type = notification.type;
  out.receiver = notification.receiver;
  out.route_id = notification.route_id;
  out.group_key = notification.group_key;
  out.reason = notification.reason;
  out.kind = notification.kind;
  out.attempt = 0;  // no attempt; an attempt's record carries its number and its class
  out.outcome = OutcomeClass::unknown;
  out.config_version = notification.config_version;
  core::Listing listing = core::listing_of(notification);
  out.issues = std::move(listing.issues);
  out.stages.measured = listing.measured;
  out.stages.published = listing.published;
  out.stages.evaluated = listing.evaluated;
  out.stages.decided = notification.decided_at;
  return out;
}

void DeliveryLanes::State::end(Lane& lane, const Item& item, Delivery record, DeliveryState state) {
  record.state = state;
  lane.probe.finished(state);
  if (state == DeliveryState::dead) lane.probe.dead(record.outcome);
  --lane.waiting;
  lane.ages.erase({item.notification->decided_at, item.ticket});
  const core::Notification& notification = *item.notification;
  const std::string& id = notification.notification_id;
  if (!item.only_to.empty()) {
    const auto held = lane.put_off.find(item.only_to);
    if (held != lane.put_off.end() && --held->second == 0) lane.put_off.erase(held);
  }
  if (lane.parked.erase(id) > 0 && lane.parked.empty()) {
    log.tell(lane.trouble.unparked(called_at));
  }
  const bool lost = state == DeliveryState::dead || state == DeliveryState::expired;
  if (lost) tell_lost(lane, *unpacked(item.notification), record);
  log.record(std::move(record));
  if (lost && notification.kind == NotificationKind::open && !item.maybe_announced &&
      lane.options.traits.one_incident()) {
    lane.unopened.add(notification.group_key);
  }
  ids.finish(id);
  log.close(item.from);
  lane.probe.pending(lane.waiting);
}

// What an action says itself of what it lost is more than that a message was lost.
void DeliveryLanes::State::tell_lost(Lane& lane, const core::Notification& notification,
                                     const Delivery& record) {
  std::vector<core::Issue> told;
  if (lane.options.config != nullptr) {
    told =
        lane.options.config->abandoned(notification, record.state, lane.options.cluster, called_at);
  }
  if (told.empty()) {
    if (auto trouble = lane.trouble.given_up(notification, record, called_at)) {
      told.push_back(std::move(*trouble));
    }
  }
  log.tell(std::move(told));
}

void DeliveryLanes::State::end_without_attempt(Lane& lane, const Item& item, DeliveryState state,
                                               std::string code, std::string detail) {
  Delivery record = record_of(*item.notification);
  if (state == DeliveryState::dead) record.outcome = OutcomeClass::configuration;
  record.code = std::move(code);
  record.detail = shortened(std::move(detail), kDetailBytes);
  end(lane, item, std::move(record), state);
}

void DeliveryLanes::State::merge(Lane& lane, const std::string& group) {
  const auto found = lane.groups.find(group);
  if (found == lane.groups.end()) return;
  if (lane.options.traits.coalesce && lane.options.traits.every_issue) {
    for (const Superseded& old : coalesce_by_issue(found->second)) {
      end_without_attempt(lane, old.item, DeliveryState::superseded, "superseded",
                          "newer messages tell of its issues, the last is " + old.successor);
    }
  }
  if (lane.options.traits.one_incident()) {
    for (Superseded& old : coalesce(found->second)) {
      Delivery record = record_of(*old.item.notification);
      const bool dropped = old.successor.empty();
      record.code = dropped ? "never_announced" : "superseded";
      record.detail = dropped ? "over before it could be told" : "superseded by " + old.successor;
      if (!dropped) record.handles.emplace_back(kept::kSupersededBy, old.successor);
      end(lane, old.item, std::move(record), DeliveryState::superseded);
    }
  }
  if (found->second.empty()) lane.groups.erase(found);
  reindex(lane, group);
  lane.probe.pending(lane.waiting);
}

void DeliveryLanes::State::reindex(Lane& lane, const std::string& group) {
  changed.insert(lane.number);
  const auto found = lane.groups.find(group);
  lane.index.erase(group);
  lane.failed.erase(group);
  if (found == lane.groups.end()) return;
  const Item& first = found->second.front();
  Head head{first.ticket,     first.rank,      first.enqueued,
            first.not_before, WallTime::max(), first.in_flight};
  for (const Item& item : found->second) {
    if (!item.in_flight) head.expires = std::min(head.expires, item.expires);
  }
  (tried(first) ? lane.failed : lane.index).put(group, head);
}

// The far side keeps state and never heard of the incident: an update becomes the open, a
// close has nothing to close. True: the item was such a close and has its final state.
bool DeliveryLanes::State::joins_unopened(Lane& lane, Item& item) {
  if (!lane.unopened.erase(item.notification->group_key)) return false;
  if (item.notification->kind == NotificationKind::close) {
    end_without_attempt(lane, item, DeliveryState::superseded, "never_announced",
                        "its incident was never opened at the far side");
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

void DeliveryLanes::State::after_unopened(Lane& lane, const std::string& group) {
  const auto found = lane.groups.find(group);
  if (found == lane.groups.end()) return;
  std::deque<Item>& queue = found->second;
  while (!queue.empty() && !queue.front().in_flight && lane.unopened.has(group)) {
    if (!joins_unopened(lane, queue.front())) break;
    queue.pop_front();
  }
  if (queue.empty()) lane.groups.erase(found);
}

void DeliveryLanes::State::expire(Lane& lane, WallTime now) {
  for (HeadIndex* index : {&lane.index, &lane.failed}) {
    while (const std::string* group = index->expired(now)) expire(lane, std::string(*group), now);
  }
}

void DeliveryLanes::State::expire(Lane& lane, const std::string& group, WallTime now) {
  const auto found = lane.groups.find(group);
  std::deque<Item>& queue = found->second;
  for (std::size_t i = 0; i < queue.size();) {
    if (queue[i].in_flight || queue[i].expires > now) {
      ++i;
      continue;
    }
    const Item item = std::move(queue[i]);
    queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(i));
    end_without_attempt(
        lane, item, DeliveryState::expired, "expired",
        "not delivered within max_age, after " + std::to_string(item.attempts) + " attempts");
  }
  if (queue.empty()) {
    lane.groups.erase(found);
  } else {
    after_unopened(lane, group);
  }
  reindex(lane, group);
}

void DeliveryLanes::State::disable(Lane& lane, const std::string& why) {
  lane.disabled = why;
  for (auto& [key, queue] : lane.groups) {
    for (std::size_t i = 0; i < queue.size();) {
      if (queue[i].in_flight) {
        ++i;
        continue;
      }
      const Item item = std::move(queue[i]);
      queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(i));
      end_without_attempt(lane, item, DeliveryState::dead, "disabled", why);
    }
  }
  std::vector<std::string> groups;
  for (const auto& [key, queue] : lane.groups) groups.push_back(key);
  std::erase_if(lane.groups, [](const auto& group) { return group.second.empty(); });
  for (const std::string& group : groups) reindex(lane, group);
}

namespace {

Delivery attempt_record(const Item& item, const Attempt& attempt,
                        const core::AttemptOutcome& outcome, WallTime now) {
  Delivery out = record_of(*item.notification);
  out.attempt = item.attempts;
  out.outcome = outcome.outcome;
  out.code = outcome.code;
  out.detail = shortened(outcome.detail, kDetailBytes);
  out.latency = now - attempt.started;
  out.handles = outcome.handles;
  out.stages.sent = attempt.started;
  out.stages.answered = now;
  return out;
}

}  // namespace

namespace {

// What a later start has to know of a failure, and whom people ask about it.
void keep_fault(Delivery& record, const Item& item, const core::AttemptOutcome& outcome) {
  if (item.fault.alone()) {
    record.handles.emplace_back(kept::kOwnFailures, std::to_string(item.fault.own()));
  }
  if (!value_of(record.handles, kept::kFault).empty()) return;
  if (outcome.held) {
    record.handles.emplace_back(kept::kFault, "held");
  } else if (item.fault.alone()) {
    record.handles.emplace_back(kept::kFault, "message");
  }
}

}  // namespace

// What people must be told of an attempt that did not arrive.
void DeliveryLanes::State::told_of(Lane& lane, const Item& item, const Delivery& record,
                                   const core::AttemptOutcome& outcome, WallTime now) {
  if (outcome.outcome == OutcomeClass::configuration && !item.fault.alone()) {
    log.tell(lane.trouble.refused(*unpacked(item.notification), record, now));
  }
  if (!item.fault.parked() || item.expires <= now) return;
  lane.parked.insert(item.notification->notification_id);
  log.tell(lane.trouble.parked(*unpacked(item.notification), record, lane.parked.size(), now));
}

void DeliveryLanes::State::settle(Lane& lane, const std::string& group, const Attempt& attempt,
                                  std::size_t members, const core::AttemptOutcome& outcome,
                                  WallTime now) {
  const auto found = lane.groups.find(group);
  if (found == lane.groups.end() || !found->second.front().in_flight) return;
  Item& item = found->second.front();  // only heads are in flight
  item.in_flight = false;
  DeliveryState state = judge(lane, item, members, outcome, now);
  // Switched off while this one was under way: it will not be tried again either.
  if (state == DeliveryState::pending && !lane.disabled.empty()) state = DeliveryState::dead;
  Delivery record = attempt_record(item, attempt, outcome, now);
  if (members > 1) {
    record.handles.emplace_back(kept::kDigest, attempt.notification->notification_id);
    if (state == DeliveryState::delivered) state = DeliveryState::delivered_via_digest;
  }
  recipients_settled(lane, item, record, now);
  if (state == DeliveryState::pending) {
    keep_fault(record, item, outcome);
    told_of(lane, item, record, outcome, now);
    record.state = state;
    record.next_attempt_at = item.not_before;
    log.record(std::move(record));
    return merge(lane, group);  // what came in while it was under way
  }
  if (outcome.outcome == OutcomeClass::configuration) told_of(lane, item, record, outcome, now);
  if (outcome.outcome == OutcomeClass::delivered && !outcome.declined) {
    lane.probe.delivered(*item.notification, now);
    log.tell(lane.trouble.arrived(now));
    if (item.notification->kind == NotificationKind::close) {
      lane.incidents.erase(group);
    } else {
      lane.incidents.try_emplace(group, far_side_names(outcome.handles));
    }
  }
  const Item done = std::move(item);
  found->second.pop_front();
  if (found->second.empty()) lane.groups.erase(found);
  std::vector<std::string> put_off;
  if (done.only_to.empty()) put_off = values_of(record.handles, kept::kPutOff);
  end(lane, done, std::move(record), state);
  for (const std::string& one : put_off) spawn(lane, done, one.substr(0, one.find(' ')));
  after_unopened(lane, group);
  reindex(lane, group);
}

}  // namespace tocsin::actions
