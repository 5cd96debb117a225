// What a lane measures of itself. Internal to actions.
#pragma once

#include <chrono>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "actions/delivery/delivery_lanes.h"
#include "actions/delivery/pacing.h"
#include "core/notification.h"
#include "core/telemetry.h"
#include "core/time.h"

namespace tocsin::actions {

/// Instruments of a lane; every label value exists from the start.
class LaneProbe {
 public:
  LaneProbe(core::Telemetry& telemetry, const LaneOptions& options);
  void finished(core::DeliveryState state);
  /// `code`: the far side's status or our word for what happened.
  void attempted(core::OutcomeClass outcome, const std::string& code, core::Duration latency);
  void delivered(const core::Notification& notification, core::WallTime now);
  void pending(std::size_t count) { pending_->set(static_cast<double>(count)); }
  void oldest(core::Duration age) { oldest_->set(std::chrono::duration<double>(age).count()); }
  void breaker(Breaker::State state);
  void throttled(core::Duration wait);
  void dead(core::OutcomeClass reason) { dead_[static_cast<std::size_t>(reason)]->add(); }
  /// A person sends a message again.
  void replayed() { replays_->add(); }
  /// An outcome that nobody knows is tried again: the far side may act twice.
  void repeated() { repeated_->add(); }

 private:
  core::Telemetry& telemetry_;
  const std::string integration_;
  std::set<std::string> codes_;  // that are a label
  core::Counter* guarded_;
  std::vector<core::Counter*> states_;
  std::vector<core::Counter*> outcomes_;
  std::vector<core::Counter*> dead_;
  core::Histogram* latency_;
  core::Histogram* since_decision_;
  core::Histogram* since_event_;
  core::Histogram* retry_after_;
  core::Gauge* pending_;
  core::Gauge* oldest_;
  core::Gauge* breaker_;
  core::Counter* breaker_moves_;
  core::Counter* limited_;
  core::Counter* repeated_;
  core::Counter* replays_;
  Breaker::State breaker_was_ = Breaker::State::closed;
};

}  // namespace tocsin::actions
