// A rule that judges silence: how long nothing may be heard of a run or a worker.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "core/time.h"
#include "rules/contract/promise.h"
#include "rules/contract/rule.h"

namespace tocsin::rules {

/// A silence that lasts.
struct Silence {
  std::int64_t last_message =
      0;                      // when the newest progress frame arrived, UTC ns, or the run began
  std::int64_t limit = 0;     // ns: how long it may last
  std::int64_t promised = 0;  // ns: what the loop had promised; 0: nothing
  std::int64_t now = 0;
  std::int64_t heard = 0;   // the newest sign of life of any kind, UTC ns
  std::uint64_t nodes = 0;  // on which a process of the run has started
};

class ClockProgram : public Program {
 public:
  core::Duration threshold{};
  bool per_worker = false;
  /// Measured from the start of the run, and only until its first step; longer than the threshold.
  bool until_first_step = false;
  /// Heeds promises, and gives them so much longer.
  std::optional<core::Duration> grace;

  /// When a silence that began at `since` is as long as it may be. Until a promise is over nothing is
  /// too long; a silence that outlives it may last as long as was promised, at most `threshold`.
  [[nodiscard]] std::int64_t over_at(std::int64_t since, const Promise& promise) const noexcept {
    if (!grace || promise.within == 0) return add(since, threshold);
    const core::Duration kept = core::Duration(promise.within) + *grace;
    return std::max(add(promise.at, kept), add(since, std::min(kept, threshold)));
  }
  /// When it is too long.
  [[nodiscard]] std::int64_t due_at(std::int64_t since, const Promise& promise) const noexcept {
    return add(over_at(since, promise), core::Duration(until_first_step ? 1 : 0));
  }
  [[nodiscard]] bool step_clock() const noexcept override { return false; }
  [[nodiscard]] virtual Finding explain(const Silence& silence, const Subject& subject) const = 0;
};

}  // namespace tocsin::rules
