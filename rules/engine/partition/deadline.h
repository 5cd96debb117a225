// When the next timer is due, where records' times take the clock's place (EngineOptions::record_time).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "rules/engine/memory/moments.h"

namespace tocsin::rules {

/// Nothing is due before it: who starts what a timer ends says when that is. UTC ns.
class Deadline {
 public:
  void at_latest(std::int64_t time) noexcept { time_ = std::min(time_, time); }
  void at_earliest(std::int64_t time) noexcept { time_ = std::max(time_, time); }
  /// Timers are found again: all of them are looked at with the next record.
  void at_once() noexcept { time_ = 0; }
  /// The time for which timers are to be looked at, where that has come; none is waited for from then on.
  [[nodiscard]] std::optional<std::int64_t> take(std::int64_t now) noexcept {
    if (time_ > now) return std::nullopt;
    return std::exchange(time_, kForever);
  }

 private:
  std::int64_t time_ = kForever;
};

}  // namespace tocsin::rules
