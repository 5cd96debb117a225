// What a loop says of its present step before the step ends.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "collectors/hook/publish/session.h"
#include "core/clock.h"

namespace tocsin::hook {

/// Keeps short times of phases and, where nothing else is captured, scalars until the step ends, so that all of it
/// goes to the session in one call. For one thread at a time. `python/tocsin/library/lane.py` has the same in Python.
class StepLane {
 public:
  static constexpr std::size_t kMost = 32;
  static constexpr std::int64_t kShort = 20'000'000;  // nanoseconds

  explicit StepLane(const core::Clock& clock) : clock_(clock) {}

  /// A scalar of the present step. It goes out with the step's end where nothing else is captured at this step
  /// (`quiet`) and the step before ended within a short time of its first one; else at once.
  void scalar(Session& session, std::uint64_t name, double value, bool quiet);
  /// A span of the track `phase`: a short one goes out with the end of the step, others at once.
  void time(Session& session, const PhaseTime& time);
  /// What waits for the end of the step goes out now.
  void tell_held(Session& session);
  /// The same, but only if a scalar is among it: whoever judges a row on arrival sees the loss before what it comes from.
  void tell_values(Session& session) {
    if (value_count_ > 0) tell_held(session);
  }
  /// Ends the step. True: nothing is due at the one that begins, as Session::step_next() says.
  bool step_end(Session& session, bool optimizer_skipped, std::uint32_t micro_steps);

  /// UTC nanoseconds.
  [[nodiscard]] std::int64_t now() const;
  /// What counts as short: nanoseconds, kShort unless set.
  void set_short(std::int64_t nanoseconds) noexcept { short_ = nanoseconds; }
  [[nodiscard]] std::size_t values() const noexcept { return value_count_; }
  [[nodiscard]] std::size_t times() const noexcept { return time_count_; }

 private:
  const core::Clock& clock_;
  std::int64_t short_ = kShort;
  std::int64_t first_value_ = 0;  // when the step had its first scalar; 0: it had none
  bool prompt_ = false;           // the last step that had some ended soon after the first
  std::size_t value_count_ = 0;
  std::size_t time_count_ = 0;
  std::array<ScalarValue, kMost> values_;
  std::array<PhaseTime, kMost> times_;
};

}  // namespace tocsin::hook
