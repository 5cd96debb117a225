// Which lanes may have something to start. Internal to actions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/time.h"

namespace tocsin::actions {

/// Lanes that have changed since they were looked at, and when the others change by themselves. A
/// lane is its number: 0, 1, 2 … Pure; each call costs the logarithm of the lanes.
class LaneAgenda {
 public:
  explicit LaneAgenda(std::size_t lanes) : armed_(lanes) {}

  void changed(std::size_t lane) { changed_.insert(lane); }
  /// Lanes whose time has come have changed.
  void ripen(core::WallTime now) {
    while (!timers_.empty() && timers_.begin()->first <= now) {
      const std::size_t lane = timers_.begin()->second;
      changed_.insert(lane);
      arm(lane, std::nullopt);
    }
  }
  /// The changed lane with the lowest number; nullopt: none has changed.
  [[nodiscard]] std::optional<std::size_t> first() const {
    if (changed_.empty()) return std::nullopt;
    return *changed_.begin();
  }
  /// The lane starts nothing now. `wake`: when it is looked at again by itself; nullopt: never.
  void rests(std::size_t lane, std::optional<core::WallTime> wake) {
    changed_.erase(lane);
    arm(lane, wake);
  }

  [[nodiscard]] const std::set<std::size_t>& changed() const noexcept { return changed_; }
  /// When the first lane changes by itself; nullopt: none does.
  [[nodiscard]] std::optional<core::WallTime> next() const {
    if (timers_.empty()) return std::nullopt;
    return timers_.begin()->first;
  }

 private:
  void arm(std::size_t lane, std::optional<core::WallTime> at) {
    auto& armed = armed_[lane];
    if (armed) timers_.erase({*armed, lane});
    armed = at;
    if (at) timers_.emplace(*at, lane);
  }

  std::set<std::size_t> changed_;
  std::set<std::pair<core::WallTime, std::size_t>> timers_;
  std::vector<std::optional<core::WallTime>> armed_;  // by lane
};

}  // namespace tocsin::actions
