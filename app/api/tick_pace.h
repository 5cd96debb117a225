// When runs that have something new are told of: new values soon, samples of their nodes behind them.
#pragma once

#include <chrono>
#include <optional>
#include <set>

#include "core/clock.h"
#include "core/identity.h"

namespace tocsin::app {

/// New values are told at most twice a second, and what has only samples at most once: samples come all the time, and
/// a value that came shortly behind them would wait. Who is told of values is told of the samples, too.
class TickPace {
 public:
  static constexpr core::Duration kValuesEvery = std::chrono::milliseconds(500);
  static constexpr core::Duration kSamplesEvery = std::chrono::seconds(1);

  /// `values`: of the run itself; else only of nodes that serve it.
  void moved(const core::RunUid& run, bool values);
  /// Those to tell of now, mostly none; each of them once. `now`: steady.
  std::set<core::RunUid> take(core::Duration now);
  /// Until take() has some, if nothing else comes; nullopt: nobody waits.
  [[nodiscard]] std::optional<core::Duration> due_in(core::Duration now) const;

 private:
  std::set<core::RunUid> moved_;
  bool values_ = false;                        // some of them have values
  std::optional<core::Duration> told_;         // of anything
  std::optional<core::Duration> told_values_;  // of values
};

}  // namespace tocsin::app
