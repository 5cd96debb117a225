// Catching up: while the input is behind, only what is new and fresh is told; everything else waits
// for the next round, and is then told once (docs/routing.md, Backlogs).
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/time.h"
#include "routing/tables/agenda.h"

namespace tocsin::routing {

class Catchup {
 public:
  using Parked = std::set<std::pair<Due, std::string>>;

  explicit Catchup(core::Duration hold_max) : hold_max_(hold_max) {}

  /// Since restored() nothing at all is told before the first round.
  void start() { starting_ = true; }
  /// True: this has changed; when the input is not behind any more, what was parked is released.
  bool set_behind(bool behind, core::WallTime now) {
    if (!behind) starting_ = false;
    if (behind == behind_) return false;
    behind_ = behind;
    round_.reset();
    if (behind) gate_ = now + hold_max_;
    return true;
  }
  [[nodiscard]] bool behind() const noexcept { return behind_; }
  [[nodiscard]] bool starting() const noexcept { return starting_; }
  /// May nothing be told that can wait?
  [[nodiscard]] bool shut() const noexcept { return behind_ && !round_; }

  /// True: a round begins, of what is due until now; what was parked is released.
  bool begin_round(core::WallTime now) {
    if (!shut() || now < gate_) return false;
    round_ = now;
    starting_ = false;
    return true;
  }
  /// What becomes due while a round lasts waits for the next one.
  [[nodiscard]] core::WallTime until(core::WallTime now) const {
    return round_ ? std::min(*round_, now) : now;
  }
  /// Everything of the round is done.
  void end_round(core::WallTime now) {
    if (!round_) return;
    round_.reset();
    gate_ = now + hold_max_;
  }

  void park(const Agenda::Entry& due) { parked_.emplace(due.kind, due.key); }
  Parked release() { return std::exchange(parked_, {}); }
  [[nodiscard]] std::size_t parked() const noexcept { return parked_.size(); }
  /// When a round is due; nullopt: nothing waits for one.
  [[nodiscard]] std::optional<core::WallTime> next() const {
    if (!behind_ || parked_.empty()) return std::nullopt;
    return gate_;
  }

 private:
  core::Duration hold_max_;
  bool behind_ = false;
  bool starting_ = false;
  core::WallTime gate_{};
  std::optional<core::WallTime> round_;
  Parked parked_;  // taken from the agenda while the gate is shut
};

}  // namespace tocsin::routing
