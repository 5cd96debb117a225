#include "actions/delivery/lane_probe.h"

#include <string>

namespace tocsin::actions {

using core::Duration;
using core::WallTime;

namespace {

constexpr std::size_t kCodes = 32;  // of an integration; further ones are `other`

std::string_view outcome_of(core::DeliveryState state) {
  if (state == core::DeliveryState::delivered_via_digest) return "digest";
  if (state == core::DeliveryState::sent_unconfirmed) return "unconfirmed";
  return to_string(state);
}

}  // namespace

LaneProbe::LaneProbe(core::Telemetry& telemetry, const LaneOptions& options)
    : telemetry_(telemetry), integration_(options.integration) {
  const std::string_view id = options.integration;
  for (int i = 0; i <= static_cast<int>(core::DeliveryState::cancelled); ++i) {
    states_.push_back(
        &telemetry.counter("tocsin_router_notifications_total", "notifications by how they ended",
                           {{"integration", id},
                            {"type", options.type},
                            {"outcome", outcome_of(static_cast<core::DeliveryState>(i))}}));
  }
  for (int i = 0; i <= static_cast<int>(core::OutcomeClass::unknown); ++i) {
    outcomes_.push_back(&telemetry.counter(
        "tocsin_router_delivery_attempts_total", "attempts by their outcome class",
        {{"integration", id}, {"class", to_string(static_cast<core::OutcomeClass>(i))}}));
  }
  guarded_ = &telemetry.counter("tocsin_router_ssrf_blocked_total",
                                "attempts whose address the guard refused", {{"integration", id}});
  latency_ = &telemetry.histogram("tocsin_router_delivery_duration_seconds", "one attempt",
                                  {{"integration", id}});
  since_decision_ =
      &telemetry.histogram("tocsin_router_decision_to_delivery_seconds",
                           "from the decision to the far side's answer", {{"integration", id}});
  since_event_ =
      &telemetry.histogram("tocsin_router_event_to_delivery_seconds",
                           "from the measurement to the far side's answer", {{"integration", id}});
  for (int i = 0; i <= static_cast<int>(core::OutcomeClass::unknown); ++i) {
    dead_.push_back(&telemetry.counter(
        "tocsin_router_dead_letters_total", "notifications given up, by the class of the last try",
        {{"integration", id}, {"reason", to_string(static_cast<core::OutcomeClass>(i))}}));
  }
  retry_after_ = &telemetry.histogram("tocsin_router_retry_after_seconds",
                                      "waits that the far side asked for", {{"integration", id}});
  pending_ = &telemetry.gauge("tocsin_router_notifications_pending", "not ended yet",
                              {{"integration", id}});
  oldest_ = &telemetry.gauge("tocsin_router_notification_oldest_pending_seconds",
                             "age of the oldest decision not ended yet", {{"integration", id}});
  breaker_ = &telemetry.gauge("tocsin_router_breaker_state", "0 closed, 1 half-open, 2 open",
                              {{"integration", id}});
  breaker_moves_ = &telemetry.counter("tocsin_router_breaker_transitions_total",
                                      "changes of the breaker's state", {{"integration", id}});
  limited_ = &telemetry.counter("tocsin_router_rate_limited_seconds_total",
                                "time the far side told us to wait", {{"integration", id}});
  replays_ = &telemetry.counter("tocsin_router_replays_total",
                                "notifications that people sent again", {{"integration", id}});
  repeated_ =
      &telemetry.counter("tocsin_router_duplicates_possible_total",
                         "attempts after one whose outcome nobody knows", {{"integration", id}});
}

void LaneProbe::breaker(Breaker::State state) {
  if (state != breaker_was_) breaker_moves_->add();
  breaker_was_ = state;
  breaker_->set(static_cast<double>(state));
}

void LaneProbe::throttled(Duration wait) {
  const double seconds = std::chrono::duration<double>(wait).count();
  limited_->add(seconds);
  retry_after_->observe(seconds);
}

void LaneProbe::finished(core::DeliveryState state) {
  states_[static_cast<std::size_t>(state)]->add();
}

void LaneProbe::attempted(core::OutcomeClass outcome, const std::string& code, Duration latency) {
  if (code == "address_blocked") guarded_->add();
  if (code.empty()) {
    outcomes_[static_cast<std::size_t>(outcome)]->add();
  } else {
    const bool known = codes_.contains(code) || codes_.size() < kCodes;
    if (known) codes_.insert(code);
    telemetry_
        .counter("tocsin_router_delivery_attempts_total", "attempts by their outcome class",
                 {{"integration", integration_},
                  {"class", to_string(outcome)},
                  {"code", known ? std::string_view(code) : "other"}})
        .add();
  }
  latency_->observe(std::chrono::duration<double>(latency).count());
}

void LaneProbe::delivered(const core::Notification& notification, WallTime now) {
  since_decision_->observe(std::chrono::duration<double>(now - notification.decided_at).count());
  const WallTime measured = core::listing_of(notification).measured;
  if (measured == WallTime{}) return;
  since_event_->observe(std::chrono::duration<double>(now - measured).count());
}

}  // namespace tocsin::actions
