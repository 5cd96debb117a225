#include "actions/delivery/lane_restart.h"

#include "actions/contract/message_fault.h"

namespace tocsin::actions {

using core::Delivery;
using core::DeliveryState;
using core::NotificationKind;
using core::OutcomeClass;

void restore_attempt(Lane& lane, const Delivery& delivery) {
  const bool counts = value_of(delivery.handles, kept::kFault).empty();
  if (delivery.attempt == 0 || !counts) return;
  const bool up =
      delivery.outcome != OutcomeClass::transient && delivery.outcome != OutcomeClass::unknown;
  lane.pace.restored("group " + delivery.group_key, delivery.stages.sent, up,
                     delivery.stages.answered);
  if (delivery.outcome == OutcomeClass::delivered) {
    lane.stand.moved();
  } else {
    lane.stand.failed(delivery.stages.answered, delivery.code);
  }
}

void restore_wait(Lane& lane, const Delivery& delivery, const Retry& retry) {
  const bool lane_waits = delivery.outcome == OutcomeClass::throttled && delivery.next_attempt_at &&
                          retry.own_failures == 0;
  if (lane_waits) lane.pace.restore_pause(*delivery.next_attempt_at, retry.wait);
}

void restore_end(Lane& lane, const Delivery& delivery, bool maybe_announced) {
  // Lost before anybody saw it, where the far side keeps an incident.
  const bool lost =
      delivery.state == DeliveryState::dead || delivery.state == DeliveryState::expired;
  if (!lost) {
    lane.far_side.forget_unopened(delivery.group_key);
  } else if (delivery.kind == NotificationKind::open && !maybe_announced &&
             lane.options.traits.one_incident()) {
    lane.far_side.never_opened(delivery.group_key);
  }
  const bool seen = delivery.state == DeliveryState::delivered ||
                    delivery.state == DeliveryState::delivered_via_digest ||
                    delivery.state == DeliveryState::sent_unconfirmed;
  if (seen) lane.far_side.arrived(delivery.group_key, delivery.kind, delivery.handles);
}

}  // namespace tocsin::actions
