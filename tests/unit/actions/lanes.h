// Lanes of two integrations on a clock moved by hand, and what they have finished.
#pragma once

#include <string>
#include <vector>

#include "actions/delivery/delivery_lanes.h"
#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions::testing_support {

inline core::AttemptOutcome outcome(core::OutcomeClass what,
                                    std::optional<core::Duration> retry_after = std::nullopt) {
  core::AttemptOutcome out;
  out.outcome = what;
  out.retry_after = retry_after;
  return out;
}

struct Lanes {
  explicit Lanes(CommonConfig common = {}, Traits traits = {}, double jitter = 1.0)
      : lanes(
            {{"oncall/webhook", common, traits, nullptr, "c1"}, {"other", {}, {}, nullptr, "c1"}},
            [jitter] { return jitter; }, telemetry) {}

  void enqueue(const std::string& id, core::NotificationKind kind = core::NotificationKind::open,
               const std::string& group = "g", core::Severity severity = core::Severity::error) {
    auto notification = sample_notification(id, kind);
    notification.group_key = group;
    notification.issues[0].issue.severity = severity;
    notification.decided_at = now;
    lanes.enqueue(std::move(notification), now, core::Position{{"router-outbox", 0}, offset++});
  }
  /// Takes the next attempt and ends it; its id, or "" when nothing may start.
  std::string step(core::AttemptOutcome what) {
    const auto attempt = lanes.next(now);
    if (!attempt) return "";
    lanes.finished(*attempt, what, now);
    return attempt->notification->notification_id;
  }
  std::string step(core::OutcomeClass what = core::OutcomeClass::delivered) {
    return step(outcome(what));
  }
  /// "id:state" of the final records since the last call.
  std::vector<std::string> finals() {
    std::vector<std::string> out;
    batch = lanes.take();
    for (const auto& record : batch.deliveries) {
      if (record.state == core::DeliveryState::pending) continue;
      out.push_back(record.notification_id + ":" + std::string(to_string(record.state)));
    }
    return out;
  }

  core::NullTelemetry telemetry;
  core::WallTime now = kStart;
  std::int64_t offset = 0;
  DeliveryLanes lanes;
  DeliveryLanes::Batch batch;
};

}  // namespace tocsin::actions::testing_support
