#include "actions/delivery/delivery_lanes.h"

#include <algorithm>
#include <utility>

#include "actions/delivery/digest.h"
#include "actions/delivery/lane.h"
#include "actions/delivery/lanes_state.h"
#include "core/identity.h"

namespace tocsin::actions {

using core::Delivery;
using core::DeliveryState;
using core::Duration;
using core::NotificationKind;
using core::OutcomeClass;
using core::WallTime;

std::vector<LaneOptions> lane_options(const ReceiversConfig& receivers,
                                      const std::string& cluster) {
  std::vector<LaneOptions> out;
  for (const auto& integration : receivers.integrations) {
    out.push_back({integration.common.id, integration.common, integration.traits,
                   integration.config, cluster});
  }
  return out;
}

DeliveryLanes::DeliveryLanes(std::vector<LaneOptions> lanes, Random random,
                             core::Telemetry& telemetry)
    : state_(std::make_unique<State>()) {
  state_->random = std::move(random);
  for (auto& options : lanes) {
    std::string id = options.integration;
    const auto [lane, added] = state_->lanes.try_emplace(std::move(id), std::move(options),
                                                         telemetry, state_->numbered.size());
    if (added) state_->numbered.push_back(&lane->second);
  }
}

DeliveryLanes::~DeliveryLanes() = default;

void DeliveryLanes::enqueue(core::Notification notification, WallTime now,
                            std::optional<core::Position> from) {
  State& state = *state_;
  state.called_at = now;
  const std::string id = notification.notification_id;
  if (state.ids.has(id)) {
    state.log.pass(from);
    return state.spawn_owed(notification, from);
  }
  Item item;
  item.ticket = ++state.last_ticket;
  item.from = from;
  item.enqueued = now;
  if (state.before.take_promotion(id)) {
    notification.kind = NotificationKind::open;
    notification.rendered.clear();
  }
  state.log.open(from);
  state.ids.wait(id);

  const auto found = state.lanes.find(notification.integration);
  if (found == state.lanes.end()) {
    item.notification = std::make_shared<core::Notification>(std::move(notification));
    Delivery record = record_of(*item.notification);
    record.state = DeliveryState::cancelled;
    record.code = "no_integration";
    record.detail = "the configuration has no integration of this id any more";
    state.log.record(std::move(record));
    state.ids.finish(id);
    state.log.close(from);
    return;
  }
  Lane& lane = found->second;
  if (lane.restored_pause.count() > 0) {
    lane.paused_until =
        std::min(lane.paused_until, now + std::exchange(lane.restored_pause, Duration{}));
  }
  lane.breaker.not_longer_than_meant(now);
  lane.stand.not_later_than(now);
  ++lane.waiting;
  lane.ages.emplace(notification.decided_at, item.ticket);
  item.expires = expiry_of(notification, lane.options.common);
  item.rank = rank_of(notification);
  const std::string group = notification.group_key;
  item.notification = std::make_shared<core::Notification>(std::move(notification));
  state.recall(item);
  if (!lane.options.common.enabled || lane.options.common.shadow) {
    const bool shadow = lane.options.common.enabled;
    return state.end_without_attempt(
        lane, item, DeliveryState::cancelled, shadow ? "shadow" : "not_enabled",
        shadow ? "shadow: decided and recorded, not sent" : "enabled: false in the configuration");
  }
  if (!lane.disabled.empty()) {
    return state.end_without_attempt(lane, item, DeliveryState::dead, "disabled", lane.disabled);
  }
  if (!lane.groups.contains(group) && state.joins_unopened(lane, item)) return;
  lane.groups[group].push_back(std::move(item));
  state.merge(lane, group);
}

namespace {

// As one attempt sends it: with what the far side calls the incident, and without the recipients
// that have deliveries of their own.
std::shared_ptr<const core::Notification> addressed(const Lane& lane, const Item& item) {
  HandleList handles;
  const auto incident = lane.incidents.find(item.notification->group_key);
  if (incident != lane.incidents.end()) handles = incident->second;
  if (!item.only_to.empty()) {
    handles.emplace_back(kept::kOnlyTo, item.only_to);
  } else {
    for (const auto& [recipient, count] : lane.put_off)
      handles.emplace_back(kept::kNotTo, recipient);
  }
  if (handles.empty() || item.notification->handles == handles) return item.notification;
  auto known = std::make_shared<core::Notification>(*item.notification);
  known->handles = std::move(handles);
  return known;
}

// Who an attempt speaks for: the breaker counts by it.
std::string who_of(const Attempt& attempt) {
  const std::string_view only = value_of(attempt.notification->handles, kept::kOnlyTo);
  return only.empty() ? "group " + attempt.notification->group_key : "to " + std::string(only);
}

}  // namespace

std::optional<Attempt> DeliveryLanes::State::start(Lane& lane, const std::vector<Item*>& items,
                                                   WallTime now) {
  Attempt out;
  out.integration = lane.options.integration;
  out.started = now;
  out.budget = std::chrono::duration_cast<std::chrono::milliseconds>(lane.options.common.timeout);
  bool again = false;
  for (Item* item : items) {
    item->in_flight = true;
    ++item->attempts;
    again = again || tried(*item);
  }
  if (items.size() == 1) {
    const Item& item = *items.front();
    out.ticket = item.ticket;
    out.number = item.attempts;
    out.notification = addressed(lane, item);
    const bool anew = item.notification->rendered.empty();
    if (anew || lane.options.traits.reads_issues) out.notification = unpacked(out.notification);
  } else {
    out.ticket = ++last_ticket;
    auto digest = digest_of(items, lane.options.common.max_alerts);
    for (const auto& [recipient, count] : lane.put_off) {
      digest.handles.emplace_back(kept::kNotTo, recipient);
    }
    out.notification = std::make_shared<core::Notification>(std::move(digest));
    for (const Item* item : items) {
      digests[out.ticket].push_back(item->notification->group_key);
      out.number = std::max(out.number, item->attempts);
    }
  }
  ++lane.in_flight;
  if (again) lane.failed_under_way.insert(out.ticket);
  lane.bucket.take(now);
  lane.breaker.started(who_of(out), now);
  lane.probe.breaker(lane.breaker.state());
  return out;
}

std::optional<Attempt> DeliveryLanes::State::attempt_of(Lane& lane, WallTime now) {
  expire(lane, now);
  const std::vector<std::string> groups = lane.choose(now);
  if (groups.empty()) return std::nullopt;
  std::vector<Item*> items;
  items.reserve(groups.size());
  for (const std::string& group : groups) items.push_back(&lane.groups.at(group).front());
  auto out = start(lane, items, now);
  for (const std::string& group : groups) reindex(lane, group);
  return out;
}

void DeliveryLanes::State::arm(Lane& lane, std::optional<WallTime> at) {
  if (lane.armed) timers.erase({*lane.armed, lane.number});
  lane.armed = at;
  if (at) timers.emplace(*at, lane.number);
}

std::optional<Attempt> DeliveryLanes::next(WallTime now) {
  State& state = *state_;
  state.called_at = now;
  while (!state.timers.empty() && state.timers.begin()->first <= now) {
    state.changed.insert(state.timers.begin()->second);
    state.arm(*state.numbered[state.timers.begin()->second], std::nullopt);
  }
  while (!state.changed.empty()) {
    Lane& lane = *state.numbered[*state.changed.begin()];
    if (auto attempt = state.attempt_of(lane, now)) return attempt;
    state.changed.erase(lane.number);
    state.arm(lane, lane.wake(now));
  }
  return std::nullopt;
}

std::optional<WallTime> DeliveryLanes::next_deadline(WallTime now) const {
  std::optional<WallTime> out;
  const auto offer = [&](WallTime at) { out = out ? std::min(*out, at) : at; };
  if (!state_->timers.empty()) offer(std::max(now, state_->timers.begin()->first));
  for (const std::size_t number : state_->changed) {
    if (const auto at = state_->numbered[number]->wake(now)) offer(*at);
  }
  return out;
}

// What the attempt says of the far side: the breaker, the width, the lane's movement.
void DeliveryLanes::State::count(Lane& lane, const Attempt& attempt,
                                 const core::AttemptOutcome& outcome, WallTime now) {
  const std::string who = who_of(attempt);
  const auto queue = lane.groups.find(attempt.notification->group_key);
  const bool known = queue != lane.groups.end() && queue->second.front().in_flight;
  const bool proven = known && queue->second.front().fault.proven();
  const bool alone = known && queue->second.front().fault.alone();
  const bool recipient = !value_of(outcome.handles, kept::kFault).empty();
  const bool for_all = value_of(attempt.notification->handles, kept::kOnlyTo).empty();
  const bool failed =
      outcome.outcome == OutcomeClass::transient || outcome.outcome == OutcomeClass::unknown;
  if (recipient) {
    lane.breaker.finished(who, true, now);  // the far side answered
  } else if (outcome.held || (failed && proven)) {
    lane.breaker.withdrawn(who);
  } else {
    lane.breaker.finished(who, !failed, now);
  }
  lane.probe.breaker(lane.breaker.state());
  lane.probe.attempted(outcome.outcome, now - attempt.started);
  if (outcome.declined) return;
  if (outcome.outcome == OutcomeClass::delivered) {
    ++lane.arrived;
    lane.throttled = 0;
    lane.said_gone.clear();
    lane.width.arrived();
    lane.stand.moved();
  } else if (!alone && for_all && (recipient || !outcome.held)) {
    lane.stand.failed(now,
                      outcome.detail.empty() ? outcome.code : outcome.code + ": " + outcome.detail);
  }
  if (outcome.outcome == OutcomeClass::throttled && !alone && for_all) {
    ++lane.throttled;
    lane.width.throttled();
  }
}

void DeliveryLanes::finished(const Attempt& attempt, const core::AttemptOutcome& outcome,
                             WallTime now) {
  const auto found = state_->lanes.find(attempt.integration);
  if (found == state_->lanes.end()) return;
  Lane& lane = found->second;
  state_->called_at = now;
  state_->changed.insert(lane.number);
  if (lane.in_flight > 0) --lane.in_flight;
  lane.failed_under_way.erase(attempt.ticket);
  state_->log.tell(outcome.issues);
  state_->count(lane, attempt, outcome, now);
  const auto digest = state_->digests.find(attempt.ticket);
  if (digest == state_->digests.end()) {
    state_->settle(lane, attempt.notification->group_key, attempt, 1, outcome, now);
  } else {
    const auto members = std::move(digest->second);
    state_->digests.erase(digest);
    for (const std::string& group : members) {
      state_->settle(lane, group, attempt, members.size(), outcome, now);
    }
  }
  if (outcome.outcome != OutcomeClass::gone) return;
  // One message may be answered so for itself; the next one says whether it is the far side.
  const std::string& id = attempt.notification->notification_id;
  if (!lane.said_gone.empty() && lane.said_gone != id) {
    state_->disable(lane, outcome.detail.empty() ? "the far side is gone (" + outcome.code + ")"
                                                 : outcome.detail);
  }
  lane.said_gone = id;
}

void DeliveryLanes::not_started(const Attempt& attempt, WallTime now) {
  const auto found = state_->lanes.find(attempt.integration);
  if (found == state_->lanes.end()) return;
  Lane& lane = found->second;
  state_->called_at = now;
  if (lane.in_flight > 0) --lane.in_flight;
  lane.failed_under_way.erase(attempt.ticket);
  lane.breaker.withdrawn(who_of(attempt));
  lane.probe.breaker(lane.breaker.state());
  std::vector<std::string> groups{attempt.notification->group_key};
  if (const auto digest = state_->digests.extract(attempt.ticket)) groups = digest.mapped();
  for (const std::string& group : groups) {
    const auto queue = lane.groups.find(group);
    if (queue == lane.groups.end() || !queue->second.front().in_flight) continue;
    queue->second.front().in_flight = false;
    --queue->second.front().attempts;
    state_->merge(lane, group);  // what came in while it was queued
  }
}

namespace {

// A message that waits and speaks of more than of such trouble; null: none does.
std::shared_ptr<const core::Notification> witness(const Lane& lane) {
  for (const auto& [group, queue] : lane.groups) {
    auto whole = unpacked(queue.front().notification);
    if (!speaks_of_trouble_only(*whole)) return whole;
  }
  return nullptr;
}

}  // namespace

void DeliveryLanes::measure(WallTime now) {
  for (Lane* lane : state_->numbered) {
    lane->probe.oldest(lane->ages.empty() ? Duration{} : now - lane->ages.begin()->first);
    if (lane->waiting == 0) lane->stand.moved();
    if (!lane->stand.failing()) {
      state_->log.tell(lane->trouble.moves(now));
      continue;
    }
    const auto since = lane->stand.stands(now);
    if (!since || !lane->trouble.may_say_standing(now)) continue;
    const auto waits = witness(*lane);
    if (waits == nullptr) continue;
    Delivery record = record_of(*waits);
    record.detail = lane->stand.why();
    state_->log.tell(lane->trouble.standing(record, *since, lane->waiting, now));
  }
}

DeliveryLanes::Batch DeliveryLanes::take() { return state_->log.take(); }

}  // namespace tocsin::actions
