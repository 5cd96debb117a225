// How fast a lane may go: back-off with full jitter, token bucket, circuit breaker. Pure; times are
// arguments. Internal to actions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <utility>

#include "actions/contract/common_config.h"
#include "core/time.h"

namespace tocsin::actions {

/// No message is tried again sooner than this, whatever chance, settings and far side say.
inline constexpr core::Duration kShortestWait = std::chrono::milliseconds(100);
/// No far side makes us wait longer than this at once.
inline constexpr core::Duration kLongestThrottle = std::chrono::hours(1);

/// random(0, min(max, initial · factor^(failures − 1))), `failures` from 1, `uniform` in [0, 1); at
/// least kShortestWait.
core::Duration backoff(const RetryConfig& cfg, std::uint32_t failures, double uniform);
/// Wait after the n-th configuration error in a row: 1 min, doubling, at most 10 min.
core::Duration configuration_wait(std::uint32_t failures);

/// Wait after the n-th failure of a message that is parked: five times the longest back-off, doubling,
/// at most thirty times (10 min to an hour).
core::Duration parked_wait(const RetryConfig& cfg, std::uint32_t times);

/// How many attempts a lane may have under way: what the configuration says, halved each time the
/// far side says that it is too much, and one more after every ten messages that arrived.
class LaneWidth {
 public:
  explicit LaneWidth(std::uint32_t limit) : limit_(limit), now_(limit) {}
  void throttled() {
    now_ = std::max<std::uint32_t>(1, now_ / 2);
    arrived_ = 0;
  }
  void arrived() {
    if (now_ < limit_ && ++arrived_ % 10 == 0) ++now_;
  }
  [[nodiscard]] std::uint32_t now() const noexcept { return now_; }

 private:
  std::uint32_t limit_;
  std::uint32_t now_;
  std::uint32_t arrived_ = 0;
};

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

/// One message that the far side cannot take is no far side that is down: the breaker opens after
/// failures of at least two messages (`who`), with none in between that was answered.
class Breaker {
 public:
  enum class State { closed = 0, half_open = 1, open = 2 };
  explicit Breaker(const BreakerConfig& cfg) : cfg_(cfg), pause_(cfg.open) {}

  /// Whether an attempt may start now: yes while closed, one probe once the pause is over. A message
  /// that was never tried (`fresh`) may ask earlier, 1 s, 2 s, 4 s … into the pause: what opened the
  /// breaker may have been the messages.
  [[nodiscard]] bool ready(core::WallTime now, bool fresh) const {
    return state_ == State::closed || (!probing() && now >= (fresh ? early() : until_));
  }
  /// When ready() will hold by itself (a probe in flight is announced by its end).
  [[nodiscard]] core::WallTime next(core::WallTime now, bool fresh) const {
    return state_ == State::closed ? now : std::max(now, fresh ? early() : until_);
  }
  void started(const std::string& who, core::WallTime now);
  /// What started() announced was not carried out: the next may be the probe.
  void withdrawn(const std::string& who);
  /// The clock has stepped back since the breaker opened: it opens no longer than it was meant to.
  void not_longer_than_meant(core::WallTime now);
  /// `up`: the far side answered, whatever it said.
  void finished(const std::string& who, bool up, core::WallTime now);
  [[nodiscard]] State state() const noexcept { return state_; }
  /// A person knows better: as if it had never failed.
  void close();
  /// When the pause of an open breaker is over.
  [[nodiscard]] core::WallTime until() const noexcept { return until_; }

 private:
  [[nodiscard]] bool probing() const { return !probe_.empty(); }
  [[nodiscard]] core::WallTime early() const { return std::min(until_, early_); }
  void trip(core::WallTime now);
  void probed(bool up, core::WallTime now);
  BreakerConfig cfg_;
  State state_ = State::closed;
  core::Duration pause_;
  core::Duration step_{};   // between early probes; doubles
  core::WallTime until_{};  // the pause ends
  core::WallTime early_{};  // the next early probe
  std::string probe_;       // who probes
  bool early_probe_ = false;
  std::uint32_t in_a_row_ = 0;
  std::set<std::string> failed_;  // who failed since the last answer; no more than matter
  std::deque<std::pair<core::WallTime, bool>> minute_;  // outcomes of the last minute
};

}  // namespace tocsin::actions
