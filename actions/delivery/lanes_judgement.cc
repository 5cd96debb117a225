// What an outcome means for a message: when it is tried again, in which form, or that it ends.
#include <algorithm>

#include "actions/delivery/digest.h"
#include "actions/delivery/lanes_state.h"

namespace tocsin::actions {

using core::DeliveryState;
using core::Duration;
using core::OutcomeClass;
using core::WallTime;

// The item's next attempt, or its final state when it has had all it may have.
void DeliveryLanes::State::wait(Item& item, WallTime until, std::uint32_t max_attempts,
                                DeliveryState& state) const {
  item.not_before = until;
  if (max_attempts > 0 && item.attempts >= max_attempts) state = DeliveryState::dead;
}

// Whose failure it was. What fails alone is sent in its short form; a digest is taken apart.
void DeliveryLanes::State::note_failure(Lane& lane, Item& item, std::size_t members,
                                        const core::AttemptOutcome& outcome) const {
  ++item.failures;
  const bool of_recipient = !value_of(outcome.handles, kept::kFault).empty();
  if (!lane.options.traits.coalesce || (outcome.held && !of_recipient)) return;
  item.fault.failed(lane.arrived);
  if (members > 1 && item.fault.alone()) {
    item.together = half_of(members);
    lane.splitting = lane.splitting || item.together > 1;
  } else if (item.fault.proven() && !of_recipient && !item.notification->minimal) {
    item.notification = short_form(*item.notification);
  }
}

DeliveryState DeliveryLanes::State::judge_throttle(Lane& lane, Item& item, Duration hint,
                                                   WallTime now) const {
  const RetryConfig& retry = lane.options.common.retry;
  const std::uint32_t times = std::max(item.failures, lane.throttled);
  const Duration pause = std::max(hint, backoff(retry, times, random()));
  // One that is told to wait while others arrive waits alone, and so does a recipient.
  if (!item.fault.alone() && item.only_to.empty()) {
    lane.paused_until = std::max(lane.paused_until, now + pause);
    lane.probe.throttled(pause);
  }
  DeliveryState state = DeliveryState::pending;
  wait(item, now + pause, retry.max_attempts, state);
  return state;
}

DeliveryState DeliveryLanes::State::judge_payload(Lane& lane, Item& item, std::size_t members,
                                                  Duration hint, WallTime now) const {
  DeliveryState state = DeliveryState::pending;
  if (members > 1) {
    item.together = half_of(members);
    lane.splitting = lane.splitting || item.together > 1;
  } else {
    if (item.notification->minimal) return DeliveryState::dead;
    item.notification = short_form(*item.notification);
  }
  wait(item, now + hint, lane.options.common.retry.max_attempts, state);
  return state;
}

DeliveryState DeliveryLanes::State::judge(Lane& lane, Item& item, std::size_t members,
                                          const core::AttemptOutcome& outcome, WallTime now) const {
  const CommonConfig& cfg = lane.options.common;
  DeliveryState state = DeliveryState::pending;
  const Duration hint =
      std::clamp<Duration>(outcome.retry_after.value_or(Duration{}), Duration{}, kLongestThrottle);
  if (outcome.outcome != OutcomeClass::configuration) item.misconfigured_since.reset();
  switch (outcome.outcome) {
    case OutcomeClass::delivered:
      if (outcome.declined) return DeliveryState::cancelled;
      return outcome.confirmed ? DeliveryState::delivered : DeliveryState::sent_unconfirmed;
    case OutcomeClass::unknown:
      item.maybe_announced = true;
      if (!cfg.retry_unknown && !lane.options.traits.dedup) return DeliveryState::sent_unconfirmed;
      lane.probe.repeated();
      [[fallthrough]];
    case OutcomeClass::transient: {
      note_failure(lane, item, members, outcome);
      const Duration own =
          item.fault.parked()
              ? parked_wait(cfg.retry, item.fault.own() - MessageFault::kParkAfter + 1)
              : backoff(cfg.retry, item.failures, random());
      wait(item, now + std::max(hint, own), cfg.retry.max_attempts, state);
      return state;
    }
    case OutcomeClass::throttled:
      note_failure(lane, item, members, outcome);
      return judge_throttle(lane, item, hint, now);
    case OutcomeClass::configuration:
      note_failure(lane, item, members, outcome);
      if (!item.misconfigured_since) item.misconfigured_since = now;
      if (now - *item.misconfigured_since >= cfg.config_hold) return DeliveryState::dead;
      wait(item, now + std::max(hint, configuration_wait(item.failures)), cfg.retry.max_attempts,
           state);
      return state;
    case OutcomeClass::bad_payload:
      return judge_payload(lane, item, members, hint, now);
    case OutcomeClass::gone:
      return DeliveryState::dead;
  }
  return DeliveryState::dead;
}

}  // namespace tocsin::actions
