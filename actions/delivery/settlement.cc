#include "actions/delivery/settlement.h"

#include <string>
#include <utility>
#include <vector>

#include "actions/contract/message_fault.h"
#include "actions/delivery/delivery_record.h"

namespace tocsin::actions {

using core::Delivery;
using core::DeliveryState;
using core::OutcomeClass;
using core::WallTime;

// What people must be told of an attempt that did not arrive.
void Settlement::tell(Lane& lane, const Item& item, const Delivery& record,
                      const core::AttemptOutcome& outcome, WallTime now) {
  if (outcome.outcome == OutcomeClass::configuration && !item.fault.alone()) {
    log_.tell(lane.trouble.refused(*unpacked(item.notification), record, now));
  }
  if (!item.fault.parked() || item.expires <= now) return;
  lane.parked.insert(item.notification->notification_id);
  log_.tell(lane.trouble.parked(*unpacked(item.notification), record, lane.parked.size(), now));
}

void Settlement::settle(Lane& lane, const std::string& group, const Attempt& attempt,
                        std::size_t members, const core::AttemptOutcome& outcome, WallTime now) {
  Item* const told = lane.queue.under_way(group);
  if (told == nullptr) return;
  Item& item = *told;
  item.in_flight = false;
  DeliveryState state = judge_.judge(lane, item, members, outcome, now);
  // Switched off while this one was under way: it will not be tried again either.
  if (state == DeliveryState::pending && !lane.pace.switched_off().empty()) {
    state = DeliveryState::dead;
  }
  Delivery record = attempt_record(item, attempt, outcome, now);
  if (members > 1) {
    record.handles.emplace_back(kept::kDigest, attempt.notification->notification_id);
    if (state == DeliveryState::delivered) state = DeliveryState::delivered_via_digest;
  }
  record.state = state;
  own_deliveries_.settled(lane, item, record, now);
  if (state == DeliveryState::pending) {
    keep_fault(record, item, outcome);
    tell(lane, item, record, outcome, now);
    record.next_attempt_at = item.not_before;
    log_.record(std::move(record));
    return backlog_.merge(lane, group, now);  // what came in while it was under way
  }
  if (outcome.outcome == OutcomeClass::configuration) tell(lane, item, record, outcome, now);
  if (outcome.outcome == OutcomeClass::delivered && !outcome.declined) {
    lane.probe.delivered(*item.notification, now);
    log_.tell(lane.trouble.arrived(now));
    lane.far_side.arrived(group, item.notification->kind, outcome.handles);
  }
  end(lane, group, std::move(record), now);
}

void Settlement::end(Lane& lane, const std::string& group, Delivery record, WallTime now) {
  const Item done = lane.queue.take_first(group);
  std::vector<std::string> put_off;
  if (done.only_to.empty()) put_off = values_of(record.handles, kept::kPutOff);
  endings_.end(lane, done, std::move(record), now);
  for (const std::string& one : put_off) {
    own_deliveries_.spawn(lane, done, one.substr(0, one.find(' ')), now);
  }
  backlog_.ended(lane, group, now);
}

}  // namespace tocsin::actions
