#include "actions/delivery/attempts.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string_view>
#include <utility>

#include "actions/contract/message_fault.h"
#include "actions/delivery/digest.h"

namespace tocsin::actions {

using core::OutcomeClass;
using core::WallTime;

namespace {

// As one attempt sends it: with what the far side calls the incident, and without the recipients
// that have deliveries of their own.
std::shared_ptr<const core::Notification> addressed(const Lane& lane, const Item& item) {
  HandleList handles;
  const HandleList* const incident = lane.far_side.incident(item.notification->group_key);
  if (incident != nullptr) handles = *incident;
  if (!item.only_to.empty()) {
    handles.emplace_back(kept::kOnlyTo, item.only_to);
  } else {
    lane.put_off.leave_out(handles);
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

// What the attempt says of the far side: the breaker, the width, the lane's movement.
void count_answer(Lane& lane, const Attempt& attempt, const core::AttemptOutcome& outcome,
                  WallTime now) {
  const std::string who = who_of(attempt);
  const Item* const item = lane.queue.under_way(attempt.notification->group_key);
  const bool proven = item != nullptr && item->fault.proven();
  const bool alone = item != nullptr && item->fault.alone();
  const bool recipient = !value_of(outcome.handles, kept::kFault).empty();
  const bool for_all = value_of(attempt.notification->handles, kept::kOnlyTo).empty();
  const bool failed =
      outcome.outcome == OutcomeClass::transient || outcome.outcome == OutcomeClass::unknown;
  if (recipient) {
    lane.pace.answered(who, true, now);
  } else if (outcome.held || (failed && proven)) {
    lane.pace.withdrawn(who);
  } else {
    lane.pace.answered(who, !failed, now);
  }
  lane.probe.breaker(lane.pace.breaker());
  lane.probe.attempted(outcome.outcome, outcome.code, now - attempt.started);
  if (outcome.declined) return;
  if (outcome.outcome == OutcomeClass::delivered) {
    lane.pace.arrived();
    lane.far_side.not_gone();
    lane.stand.moved();
  } else if (!alone && for_all && (recipient || !outcome.held)) {
    lane.stand.failed(now,
                      outcome.detail.empty() ? outcome.code : outcome.code + ": " + outcome.detail);
  }
  if (outcome.outcome == OutcomeClass::throttled && !alone && for_all) lane.pace.throttled();
}

}  // namespace

Attempt Attempts::of_one(const Lane& lane, const Item& item) const {
  Attempt out;
  out.ticket = item.ticket;
  out.number = item.attempts;
  out.notification = addressed(lane, item);
  const bool anew = item.notification->rendered.empty();
  if (anew || lane.options.traits.reads_issues) out.notification = unpacked(out.notification);
  return out;
}

Attempt Attempts::of_many(const Lane& lane, const std::vector<Item*>& items) {
  Attempt out;
  out.ticket = tickets_.next();
  auto digest = digest_of(items, lane.options.common.max_alerts);
  lane.put_off.leave_out(digest.handles);
  out.notification = std::make_shared<core::Notification>(std::move(digest));
  for (const Item* item : items) {
    digests_[out.ticket].push_back(item->notification->group_key);
    out.number = std::max(out.number, item->attempts);
  }
  return out;
}

std::optional<Attempt> Attempts::start(Lane& lane, WallTime now) {
  backlog_.expire(lane, now);
  const std::vector<std::string> groups = lane.choice.next(now);
  if (groups.empty()) return std::nullopt;
  std::vector<Item*> items;
  items.reserve(groups.size());
  bool again = false;
  for (const std::string& group : groups) {
    Item& item = lane.queue.head(group);
    item.in_flight = true;
    ++item.attempts;
    again = again || tried(item);
    items.push_back(&item);
  }
  Attempt out = items.size() == 1 ? of_one(lane, *items.front()) : of_many(lane, items);
  out.integration = lane.options.integration;
  out.started = now;
  out.budget = std::chrono::duration_cast<std::chrono::milliseconds>(lane.options.common.timeout);
  lane.pace.started(out.ticket, who_of(out), again, now);
  lane.probe.breaker(lane.pace.breaker());
  for (const std::string& group : groups) backlog_.started(lane, group);
  return out;
}

void Attempts::finished(Lane& lane, const Attempt& attempt, const core::AttemptOutcome& outcome,
                        WallTime now) {
  agenda_.changed(lane.number);
  lane.pace.returned(attempt.ticket);
  log_.tell(outcome.issues);
  log_.publish(outcome.records);
  count_answer(lane, attempt, outcome, now);
  if (const auto digest = digests_.extract(attempt.ticket)) {
    const std::vector<std::string>& members = digest.mapped();
    for (const std::string& group : members) {
      settlement_.settle(lane, group, attempt, members.size(), outcome, now);
    }
  } else {
    settlement_.settle(lane, attempt.notification->group_key, attempt, 1, outcome, now);
  }
  if (outcome.outcome != OutcomeClass::gone) return;
  if (!lane.far_side.gone(attempt.notification->notification_id)) return;
  lane.pace.switch_off(outcome.detail.empty() ? "the far side is gone (" + outcome.code + ")"
                                              : outcome.detail);
  backlog_.give_up(lane, now);
}

void Attempts::not_started(Lane& lane, const Attempt& attempt, WallTime now) {
  lane.pace.returned(attempt.ticket);
  lane.pace.withdrawn(who_of(attempt));
  lane.probe.breaker(lane.pace.breaker());
  std::vector<std::string> groups{attempt.notification->group_key};
  if (const auto digest = digests_.extract(attempt.ticket)) groups = digest.mapped();
  for (const std::string& group : groups) {
    Item* const item = lane.queue.under_way(group);
    if (item == nullptr) continue;
    item->in_flight = false;
    --item->attempts;
    backlog_.merge(lane, group, now);  // what came in while it was queued
  }
}

}  // namespace tocsin::actions
