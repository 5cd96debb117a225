#include "actions/delivery/outcome_judge.h"

#include <algorithm>
#include <cstdint>

#include "actions/contract/message_fault.h"
#include "actions/delivery/digest.h"
#include "actions/delivery/pacing.h"

namespace tocsin::actions {

using core::DeliveryState;
using core::Duration;
using core::OutcomeClass;
using core::WallTime;

namespace {

// The item waits for its next attempt, or ends when it has had all it may have.
DeliveryState again_at(WallTime when, Item& item, const RetryConfig& retry) {
  item.not_before = when;
  const bool last = retry.max_attempts > 0 && item.attempts >= retry.max_attempts;
  return last ? DeliveryState::dead : DeliveryState::pending;
}

// Whose failure it was. What fails alone is sent in its short form; a digest is taken apart.
void note_failure(Lane& lane, Item& item, std::size_t members,
                  const core::AttemptOutcome& outcome) {
  ++item.failures;
  const bool of_recipient = !value_of(outcome.handles, kept::kFault).empty();
  if (!lane.options.traits.coalesce || (outcome.held && !of_recipient)) return;
  item.fault.failed(lane.pace.arrivals());
  if (members > 1 && item.fault.alone()) {
    item.together = half_of(members);
    if (item.together > 1) lane.choice.split();
  } else if (item.fault.proven() && !of_recipient && !item.notification->minimal) {
    item.notification = short_form(*item.notification);
  }
}

DeliveryState judge_payload(Lane& lane, Item& item, std::size_t members, Duration hint,
                            WallTime now) {
  if (members > 1) {
    item.together = half_of(members);
    if (item.together > 1) lane.choice.split();
  } else {
    if (item.notification->minimal) return DeliveryState::dead;
    item.notification = short_form(*item.notification);
  }
  return again_at(now + hint, item, lane.options.common.retry);
}

}  // namespace

DeliveryState OutcomeJudge::judge_throttle(Lane& lane, Item& item, Duration hint,
                                           WallTime now) const {
  const RetryConfig& retry = lane.options.common.retry;
  const std::uint32_t times = std::max(item.failures, lane.pace.throttled_in_a_row());
  const Duration pause = std::max(hint, backoff(retry, times, random_()));
  // One that is told to wait while others arrive waits alone, and so does a recipient.
  if (!item.fault.alone() && item.only_to.empty()) {
    lane.pace.pause(now + pause);
    lane.probe.throttled(pause);
  }
  return again_at(now + pause, item, retry);
}

DeliveryState OutcomeJudge::judge(Lane& lane, Item& item, std::size_t members,
                                  const core::AttemptOutcome& outcome, WallTime now) const {
  const CommonConfig& cfg = lane.options.common;
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
      if (!outcome.held) lane.probe.repeated();  // held: the next attempt only asks
      [[fallthrough]];
    case OutcomeClass::transient: {
      note_failure(lane, item, members, outcome);
      const Duration own =
          item.fault.parked()
              ? parked_wait(cfg.retry, item.fault.own() - MessageFault::kParkAfter + 1)
              : backoff(cfg.retry, item.failures, random_());
      return again_at(now + std::max(hint, own), item, cfg.retry);
    }
    case OutcomeClass::throttled:
      note_failure(lane, item, members, outcome);
      return judge_throttle(lane, item, hint, now);
    case OutcomeClass::configuration:
      note_failure(lane, item, members, outcome);
      if (!item.misconfigured_since) item.misconfigured_since = now;
      if (now - *item.misconfigured_since >= cfg.config_hold) return DeliveryState::dead;
      return again_at(now + std::max(hint, configuration_wait(item.failures)), item, cfg.retry);
    case OutcomeClass::bad_payload:
      return judge_payload(lane, item, members, hint, now);
    case OutcomeClass::gone:
      return DeliveryState::dead;
  }
  return DeliveryState::dead;
}

}  // namespace tocsin::actions
