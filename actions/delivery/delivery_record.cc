#include "actions/delivery/delivery_record.h"

#include <cstddef>
#include <utility>

#include "actions/contract/message_fault.h"
#include "core/text.h"

namespace tocsin::actions {

using core::Delivery;
using core::DeliveryState;
using core::OutcomeClass;
using core::WallTime;

namespace {

constexpr std::size_t kDetailBytes = 2048;

// At most kDetailBytes, cut at a code point.
std::string shortened(std::string detail) {
  detail.resize(core::cut_utf8(detail, kDetailBytes).size());
  return detail;
}

void mark_replay(Delivery& record, const Item& item) {
  if (!item.replay.empty()) record.handles.emplace_back(kept::kReplay, item.replay);
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

Delivery attempt_record(const Item& item, const Attempt& attempt,
                        const core::AttemptOutcome& outcome, WallTime now) {
  Delivery out = record_of(*item.notification);
  out.attempt = item.attempts;
  out.outcome = outcome.outcome;
  out.code = outcome.code;
  out.detail = shortened(outcome.detail);
  out.latency = now - attempt.started;
  out.handles = outcome.handles;
  mark_replay(out, item);
  out.stages.sent = attempt.started;
  out.stages.answered = now;
  return out;
}

Delivery end_record(const Item& item, DeliveryState state, std::string code, std::string detail) {
  Delivery out = record_of(*item.notification);
  out.state = state;
  mark_replay(out, item);
  if (state == DeliveryState::dead) out.outcome = OutcomeClass::configuration;
  out.code = std::move(code);
  out.detail = shortened(std::move(detail));
  return out;
}

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

}  // namespace tocsin::actions
