// What lanes know after a restart, from the records of deliveries.
#include <algorithm>

#include "actions/delivery/lanes_state.h"

namespace tocsin::actions {

using core::Delivery;
using core::DeliveryState;
using core::Duration;
using core::NotificationKind;
using core::OutcomeClass;
using core::WallTime;

namespace {

// Lost before anybody saw it, where the far side keeps an incident.
bool lost(const Delivery& delivery) {
  return delivery.state == DeliveryState::dead || delivery.state == DeliveryState::expired;
}

}  // namespace

void DeliveryLanes::restore(const Delivery& delivery) {
  const auto found = state_->lanes.find(delivery.integration);
  Lane* lane = found == state_->lanes.end() ? nullptr : &found->second;
  const bool up =
      delivery.outcome != OutcomeClass::transient && delivery.outcome != OutcomeClass::unknown;
  const bool counts = value_of(delivery.handles, kept::kFault).empty();
  if (lane != nullptr && delivery.attempt > 0 && counts) {
    const std::string who = "group " + delivery.group_key;
    lane->breaker.started(who, delivery.stages.sent);
    lane->breaker.finished(who, up, delivery.stages.answered);
    if (delivery.outcome == OutcomeClass::delivered) {
      lane->stand.moved();
    } else {
      lane->stand.failed(delivery.stages.answered, delivery.code);
    }
  }
  if (delivery.state == DeliveryState::pending) {
    state_->restore_pending(lane, delivery);
  } else {
    state_->restore_final(lane, delivery);
  }
}

void DeliveryLanes::State::restore_final(Lane* lane, const Delivery& delivery) {
  ids.finish(delivery.notification_id);
  const bool maybe_announced = before.finished(delivery);
  if (lane == nullptr) return;
  if (!lost(delivery)) {
    lane->unopened.erase(delivery.group_key);
  } else if (delivery.kind == NotificationKind::open && !maybe_announced &&
             lane->options.traits.one_incident()) {
    lane->unopened.add(delivery.group_key);
  }
  const bool seen = delivery.state == DeliveryState::delivered ||
                    delivery.state == DeliveryState::delivered_via_digest ||
                    delivery.state == DeliveryState::sent_unconfirmed;
  if (!seen) return;
  if (delivery.kind == NotificationKind::close) {
    lane->incidents.erase(delivery.group_key);
  } else {
    lane->incidents.try_emplace(delivery.group_key, far_side_names(delivery.handles));
  }
}

void DeliveryLanes::State::restore_pending(Lane* lane, const Delivery& delivery) {
  const Retry& retry = before.attempted(delivery);
  const bool lane_waits = delivery.outcome == OutcomeClass::throttled && delivery.next_attempt_at &&
                          retry.own_failures == 0;
  if (lane != nullptr && lane_waits) {
    lane->paused_until = std::max(lane->paused_until, *delivery.next_attempt_at);
    lane->restored_pause = std::max(lane->restored_pause, retry.wait);
  }
}

// What was known of the item's notification before the restart.
void DeliveryLanes::State::recall(Item& item) {
  const auto retry = before.take_retry(item.notification->notification_id);
  if (!retry) return;
  item.attempts = item.failures = retry->attempts;
  // Written by another clock, perhaps one that has stepped back since: never longer than meant.
  item.not_before = std::min(retry->not_before, called_at + retry->wait);
  item.maybe_announced = retry->maybe_announced;
  item.misconfigured_since = retry->misconfigured_since;
  item.fault = MessageFault(retry->own_failures);
  if (retry->minimal) item.notification = short_form(*item.notification);
  if (item.fault.parked()) {
    if (const auto lane = lanes.find(item.notification->integration); lane != lanes.end()) {
      lane->second.parked.insert(item.notification->notification_id);
    }
  }
}

}  // namespace tocsin::actions
