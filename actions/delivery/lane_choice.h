// What a lane starts next. Internal to actions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actions/delivery/delivery_lanes.h"
#include "actions/delivery/lane_pace.h"
#include "actions/delivery/lane_queue.h"
#include "core/time.h"

namespace tocsin::actions {

/// Messages that were never tried go before those that failed, so that what the far side cannot take
/// keeps nobody else waiting. Its arguments outlive it.
class LaneChoice {
 public:
  LaneChoice(const LaneOptions& options, LanePace& pace, LaneQueue& queue)
      : options_(options), pace_(pace), queue_(queue) {}
  LaneChoice(const LaneChoice&) = delete;
  LaneChoice& operator=(const LaneChoice&) = delete;

  /// What may start now: the groups whose first messages make one attempt; none: nothing may.
  [[nodiscard]] std::vector<std::string> next(core::WallTime now);
  /// When something may happen that no finished attempt announces; nullopt: never by itself.
  [[nodiscard]] std::optional<core::WallTime> wake(core::WallTime now);
  /// The far side did not take a digest: its parts are tried.
  void split() noexcept { splitting_ = true; }

 private:
  [[nodiscard]] std::string one(core::WallTime now);
  [[nodiscard]] std::string probe(core::WallTime now);
  [[nodiscard]] std::vector<std::string> digest(core::WallTime now);

  const LaneOptions& options_;
  LanePace& pace_;
  LaneQueue& queue_;
  bool splitting_ = false;
  std::uint32_t turn_ = 0;  // of fresh and failed messages, when both are due
};

}  // namespace tocsin::actions
