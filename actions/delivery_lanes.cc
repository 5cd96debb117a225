#include "actions/delivery_lanes.h"

#include <algorithm>
#include <utility>

#include "actions/lane.h"
#include "actions/lanes_state.h"
#include "core/identity.h"

namespace tocsin::actions {

using core::Delivery;
using core::DeliveryState;
using core::Duration;
using core::NotificationKind;
using core::OutcomeClass;
using core::WallTime;

namespace {

constexpr std::size_t kDigestAbove = 20;

}  // namespace

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

void DeliveryLanes::restore(const Delivery& delivery) {
  const auto found = state_->lanes.find(delivery.integration);
  Lane* lane = found == state_->lanes.end() ? nullptr : &found->second;
  const bool up =
      delivery.outcome != OutcomeClass::transient && delivery.outcome != OutcomeClass::unknown;
  if (lane != nullptr && delivery.attempt > 0) {
    lane->breaker.started(delivery.stages.sent);
    lane->breaker.finished(up, delivery.stages.answered);
  }

  if (delivery.state != DeliveryState::pending) {
    state_->finished_ids.add(delivery.notification_id);
    const auto retry = state_->retries.find(delivery.notification_id);
    const bool maybe_announced = retry != state_->retries.end() && retry->second.maybe_announced;
    if (retry != state_->retries.end()) state_->retries.erase(retry);
    if (lane != nullptr) {
      const bool lost =
          delivery.state == DeliveryState::dead || delivery.state == DeliveryState::expired;
      if (!lost) {
        lane->unopened.erase(delivery.group_key);
      } else if (delivery.kind == NotificationKind::open && !maybe_announced &&
                 lane->options.traits.one_incident()) {
        lane->unopened.add(delivery.group_key);
      }
    }
    for (const auto& [name, value] : delivery.handles) {
      if (name == kSupersededBy && delivery.kind == NotificationKind::open)
        state_->promoted.insert(value);
    }
    const bool seen = delivery.state == DeliveryState::delivered ||
                      delivery.state == DeliveryState::delivered_via_digest ||
                      delivery.state == DeliveryState::sent_unconfirmed;
    if (lane == nullptr || !seen) return;
    if (delivery.kind == NotificationKind::close) {
      lane->incidents.erase(delivery.group_key);
    } else {
      lane->incidents.try_emplace(delivery.group_key, delivery.handles);
    }
    return;
  }
  Retry& retry = state_->retries[delivery.notification_id];
  retry.attempts = std::max(retry.attempts, delivery.attempt);
  if (delivery.next_attempt_at) {
    retry.not_before = *delivery.next_attempt_at;
    retry.wait = std::clamp<Duration>(retry.not_before - delivery.stages.answered, Duration{},
                                      kLongestThrottle);
  }
  if (delivery.outcome == OutcomeClass::unknown) retry.maybe_announced = true;
  if (delivery.outcome != OutcomeClass::configuration) {
    retry.misconfigured_since.reset();
  } else if (!retry.misconfigured_since) {
    retry.misconfigured_since = delivery.stages.answered;
  }
  if (lane != nullptr && delivery.outcome == OutcomeClass::throttled && delivery.next_attempt_at) {
    lane->paused_until = std::max(lane->paused_until, *delivery.next_attempt_at);
    lane->restored_pause = std::max(lane->restored_pause, retry.wait);
  }
}

void DeliveryLanes::enqueue(core::Notification notification, WallTime now,
                            std::optional<core::Position> from) {
  State& state = *state_;
  state.called_at = now;
  const std::string id = notification.notification_id;
  if (state.finished_ids.has(id) || state.pending_ids.contains(id)) {
    if (from) state.positions[from->where].pass(*from);
    return;
  }
  Item item;
  item.ticket = ++state.last_ticket;
  item.from = from;
  item.enqueued = now;
  if (state.promoted.erase(id) > 0) {
    notification.kind = NotificationKind::open;
    notification.rendered.clear();
  }
  if (const auto retry = state.retries.find(id); retry != state.retries.end()) {
    item.attempts = item.failures = retry->second.attempts;
    // Written by another clock, perhaps one that has stepped back since: never longer than meant.
    item.not_before = std::min(retry->second.not_before, now + retry->second.wait);
    item.maybe_announced = retry->second.maybe_announced;
    item.misconfigured_since = retry->second.misconfigured_since;
    state.retries.erase(retry);
  }
  if (from) state.positions[from->where].open(*from);
  state.pending_ids.insert(id);

  const auto found = state.lanes.find(notification.integration);
  if (found == state.lanes.end()) {
    item.notification = std::make_shared<core::Notification>(std::move(notification));
    Delivery record = record_of(*item.notification);
    record.state = DeliveryState::cancelled;
    record.code = "no_integration";
    record.detail = "the configuration has no integration of this id any more";
    state.deliveries.push_back(std::move(record));
    state.pending_ids.erase(id);
    state.finished_ids.add(id);
    if (from) state.positions[from->where].close(from->next);
    return;
  }
  Lane& lane = found->second;
  if (lane.restored_pause.count() > 0) {
    lane.paused_until =
        std::min(lane.paused_until, now + std::exchange(lane.restored_pause, Duration{}));
  }
  lane.breaker.not_longer_than_meant(now);
  ++lane.waiting;
  lane.ages.emplace(notification.decided_at, item.ticket);
  item.expires = expiry_of(notification, lane.options.common);
  item.rank = rank_of(notification);
  const std::string group = notification.group_key;
  item.notification = std::make_shared<core::Notification>(std::move(notification));
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

// One message that stands for many: the worst of all their issues, named after first and last.
core::Notification digest_of(const std::vector<Item*>& items, std::uint32_t max_issues) {
  core::Notification digest = *items.front()->notification;
  digest.notification_id =
      core::make_id("ntf_", {"digest", items.front()->notification->notification_id,
                             items.back()->notification->notification_id});
  digest.kind = NotificationKind::update;
  digest.reason = "digest";
  digest.group_key = "digest";
  digest.group_labels = {};
  digest.common_labels = {};
  digest.rendered.clear();
  digest.handles.clear();
  digest.issues.clear();
  digest.suppressed.clear();
  digest.packed.reset();
  digest.firing = false;
  digest.firing_count = digest.resolved_count = digest.truncated = 0;
  for (const Item* item : items) {
    const auto whole = unpacked(item->notification);
    const core::Notification& one = *whole;
    digest.firing = digest.firing || one.firing;
    digest.firing_count += one.firing_count;
    digest.resolved_count += one.resolved_count;
    digest.truncated += one.truncated;
    digest.decided_at = std::max(digest.decided_at, one.decided_at);
    digest.issues.insert(digest.issues.end(), one.issues.begin(), one.issues.end());
  }
  std::stable_sort(digest.issues.begin(), digest.issues.end(), [](const auto& a, const auto& b) {
    return a.issue.severity > b.issue.severity;
  });
  if (digest.issues.size() > max_issues) {
    digest.truncated += digest.issues.size() - max_issues;
    digest.issues.resize(max_issues);
  }
  return digest;
}

}  // namespace

std::optional<Attempt> DeliveryLanes::State::start(Lane& lane, const std::vector<Item*>& items,
                                                   WallTime now) {
  Attempt out;
  out.integration = lane.options.integration;
  out.started = now;
  out.budget = std::chrono::duration_cast<std::chrono::milliseconds>(lane.options.common.timeout);
  for (Item* item : items) {
    item->in_flight = true;
    ++item->attempts;
  }
  if (items.size() == 1) {
    Item& item = *items.front();
    const auto incident = lane.incidents.find(item.notification->group_key);
    if (incident != lane.incidents.end() && item.notification->handles != incident->second) {
      auto known = std::make_shared<core::Notification>(*item.notification);
      known->handles = incident->second;
      item.notification = std::move(known);
    }
    out.ticket = item.ticket;
    out.number = item.attempts;
    out.notification = item.notification;
    const bool anew = item.notification->rendered.empty();
    if (anew || lane.options.traits.reads_issues) out.notification = unpacked(item.notification);
  } else {
    out.ticket = ++last_ticket;
    out.notification =
        std::make_shared<core::Notification>(digest_of(items, lane.options.common.max_alerts));
    for (const Item* item : items) {
      digests[out.ticket].push_back(item->notification->group_key);
      out.number = std::max(out.number, item->attempts);
    }
  }
  ++lane.in_flight;
  lane.bucket.take(now);
  lane.breaker.started(now);
  lane.probe.breaker(lane.breaker.state());
  return out;
}

std::optional<Attempt> DeliveryLanes::State::attempt_of(Lane& lane, WallTime now) {
  expire(lane, now);
  if (lane.index.empty() || !lane.ready(now)) return std::nullopt;
  const std::string* best = lane.index.best(now);
  if (best == nullptr) return std::nullopt;
  std::vector<std::string> groups{*best};
  if (lane.options.traits.human && lane.waiting > kDigestAbove) {
    groups = lane.index.due(now);
    if (groups.size() <= kDigestAbove) groups = {*best};  // few incidents with many messages
  }
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

void DeliveryLanes::finished(const Attempt& attempt, const core::AttemptOutcome& outcome,
                             WallTime now) {
  const auto found = state_->lanes.find(attempt.integration);
  if (found == state_->lanes.end()) return;
  Lane& lane = found->second;
  state_->called_at = now;
  state_->changed.insert(lane.number);
  if (lane.in_flight > 0) --lane.in_flight;
  state_->issues.insert(state_->issues.end(), outcome.issues.begin(), outcome.issues.end());
  if (outcome.held) {
    lane.breaker.withdrawn();
  } else {
    lane.breaker.finished(
        outcome.outcome != OutcomeClass::transient && outcome.outcome != OutcomeClass::unknown,
        now);
  }
  lane.probe.breaker(lane.breaker.state());
  lane.probe.attempted(outcome.outcome, now - attempt.started);
  const auto digest = state_->digests.find(attempt.ticket);
  if (digest == state_->digests.end()) {
    state_->settle(lane, attempt.notification->group_key, attempt, outcome, now);
  } else {
    const auto members = std::move(digest->second);
    state_->digests.erase(digest);
    for (const std::string& group : members) state_->settle(lane, group, attempt, outcome, now);
  }
  if (outcome.outcome == OutcomeClass::gone) {
    state_->disable(lane, outcome.detail.empty() ? "the far side is gone (" + outcome.code + ")"
                                                 : outcome.detail);
  }
}

void DeliveryLanes::not_started(const Attempt& attempt, WallTime now) {
  const auto found = state_->lanes.find(attempt.integration);
  if (found == state_->lanes.end()) return;
  Lane& lane = found->second;
  state_->called_at = now;
  if (lane.in_flight > 0) --lane.in_flight;
  lane.breaker.withdrawn();
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

void DeliveryLanes::measure(WallTime now) {
  for (Lane* lane : state_->numbered) {
    lane->probe.oldest(lane->ages.empty() ? Duration{} : now - lane->ages.begin()->first);
  }
}

DeliveryLanes::Batch DeliveryLanes::take() {
  Batch out;
  out.deliveries = std::exchange(state_->deliveries, {});
  out.issues = std::exchange(state_->issues, {});
  for (auto& [where, low_water] : state_->positions) {
    if (const auto next = low_water.moved()) out.positions.push_back({where, *next});
  }
  return out;
}

}  // namespace tocsin::actions
