// How fast a lane may go: back-off with full jitter, token bucket, circuit breaker. Pure; times are
// arguments. Internal to actions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>

#include "actions/common_config.h"
#include "core/time.h"

namespace tocsin::actions {

/// random(0, min(max, initial · factor^(failures − 1))), `failures` from 1, `uniform` in [0, 1).
core::Duration backoff(const RetryConfig& cfg, std::uint32_t failures, double uniform);
/// Wait after the n-th configuration error in a row: 1 min, doubling, at most 10 min.
core::Duration configuration_wait(std::uint32_t failures);

/// `burst` tokens at first; never more than that.
class TokenBucket {
 public:
  explicit TokenBucket(const RateLimitConfig& cfg) : cfg_(cfg), tokens_(cfg.burst) {}
  [[nodiscard]] bool ready(core::WallTime now) { return refill(now) >= 1 || cfg_.rate <= 0; }
  void take(core::WallTime now);
  /// When ready() will hold; `now` if it does.
  [[nodiscard]] core::WallTime next(core::WallTime now);

 private:
  double refill(core::WallTime now);
  RateLimitConfig cfg_;
  double tokens_;
  core::WallTime filled_{};
};

class Breaker {
 public:
  enum class State { closed = 0, half_open = 1, open = 2 };
  explicit Breaker(const BreakerConfig& cfg) : cfg_(cfg), pause_(cfg.open) {}

  /// Whether an attempt may start now: yes while closed, one probe once the pause is over.
  [[nodiscard]] bool ready(core::WallTime now) const {
    return state_ == State::closed || (now >= until_ && !probing_);
  }
  /// When ready() will hold by itself (a probe in flight is announced by its end).
  [[nodiscard]] core::WallTime next(core::WallTime now) const {
    return state_ == State::closed || until_ < now ? now : until_;
  }
  void started(core::WallTime now);
  /// What started() announced was not carried out: the next may be the probe.
  void withdrawn() {
    if (state_ == State::half_open) state_ = State::open;
    probing_ = false;
  }
  /// The clock has stepped back since the breaker opened: it opens no longer than it was meant to.
  void not_longer_than_meant(core::WallTime now) { until_ = std::min(until_, now + pause_); }
  /// `up`: the far side answered, whatever it said.
  void finished(bool up, core::WallTime now);
  [[nodiscard]] State state() const noexcept { return state_; }

 private:
  void trip(core::WallTime now);
  BreakerConfig cfg_;
  State state_ = State::closed;
  core::Duration pause_;
  core::WallTime until_{};
  bool probing_ = false;
  std::uint32_t in_a_row_ = 0;
  std::deque<std::pair<core::WallTime, bool>> minute_;  // outcomes of the last minute
};

}  // namespace tocsin::actions
