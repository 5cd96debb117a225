// When a lane may start attempts, and how many. Internal to actions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "actions/contract/common_config.h"
#include "actions/delivery/pacing.h"
#include "core/time.h"

namespace tocsin::actions {

/// Rate limit, breaker, width, pauses that the far side asks for. Pure; one per lane.
class LanePace {
 public:
  explicit LanePace(const CommonConfig& cfg)
      : bucket_(cfg.rate_limit), breaker_(cfg.breaker), width_(cfg.concurrency) {}

  // ---- what may start

  /// Any attempt at all.
  [[nodiscard]] bool open(core::WallTime now) {
    return switched_off_.empty() && held_.empty() && under_way_ < width_.now() &&
           now >= paused_until_ && bucket_.ready(now);
  }
  /// Once it is open: of a message that was never tried; of one that failed before.
  [[nodiscard]] bool fresh_may(core::WallTime now) const { return breaker_.ready(now, true); }
  [[nodiscard]] bool failed_may(core::WallTime now) const {
    return failed_fits() && breaker_.ready(now, false);
  }
  /// It goes on by itself: not full, and no probe under way, whose end would announce it.
  [[nodiscard]] bool goes_on() const {
    return switched_off_.empty() && held_.empty() && under_way_ < width_.now() &&
           breaker_.state() != Breaker::State::half_open;
  }
  /// When rate limit and pause let an attempt start.
  [[nodiscard]] core::WallTime opens(core::WallTime now) {
    return std::max(paused_until_, bucket_.next(now));
  }
  /// When the breaker does.
  [[nodiscard]] core::WallTime breaker_opens(core::WallTime now, bool fresh) const {
    return breaker_.next(now, fresh);
  }
  /// Whether one more message that failed before may be under way.
  [[nodiscard]] bool failed_fits() const {
    return failed_under_way_.size() < std::max<std::size_t>(1, width_.now() / 2);
  }
  [[nodiscard]] Breaker::State breaker() const noexcept { return breaker_.state(); }

  // ---- attempts; `who` is whose failures the breaker counts together

  /// `again`: one of its messages failed before.
  void started(std::uint64_t ticket, const std::string& who, bool again, core::WallTime now) {
    ++under_way_;
    if (again) failed_under_way_.insert(ticket);
    bucket_.take(now);
    breaker_.started(who, now);
  }
  /// It is no longer under way, whatever it came to.
  void returned(std::uint64_t ticket) {
    if (under_way_ > 0) --under_way_;
    failed_under_way_.erase(ticket);
  }
  /// `up`: the far side answered.
  void answered(const std::string& who, bool up, core::WallTime now) {
    breaker_.finished(who, up, now);
  }
  /// It says nothing of the far side, or was never carried out.
  void withdrawn(const std::string& who) { breaker_.withdrawn(who); }
  /// An attempt from before the restart.
  void restored(const std::string& who, core::WallTime sent, bool up, core::WallTime answered) {
    breaker_.started(who, sent);
    breaker_.finished(who, up, answered);
  }

  void arrived() {
    ++arrived_;
    throttled_ = 0;
    width_.arrived();
  }
  void throttled() {
    ++throttled_;
    width_.throttled();
  }
  /// Messages delivered so far.
  [[nodiscard]] std::uint64_t arrivals() const noexcept { return arrived_; }
  /// Times in a row that the far side asked to wait.
  [[nodiscard]] std::uint32_t throttled_in_a_row() const noexcept { return throttled_; }

  // ---- pauses

  void pause(core::WallTime until) { paused_until_ = std::max(paused_until_, until); }
  /// A pause from before the restart, and how long it was meant to be.
  void restore_pause(core::WallTime until, core::Duration length) {
    pause(until);
    restored_pause_ = std::max(restored_pause_, length);
  }
  /// What was restored was written by another clock, which may have stepped back since.
  void not_longer_than_meant(core::WallTime now) {
    if (restored_pause_.count() > 0) {
      paused_until_ =
          std::min(paused_until_, now + std::exchange(restored_pause_, core::Duration{}));
    }
    breaker_.not_longer_than_meant(now);
  }

  /// Nothing is sent any more; `why` is not empty.
  void switch_off(const std::string& why) { switched_off_ = why; }
  /// Why nothing is sent any more (410 gone); empty: it is.
  [[nodiscard]] const std::string& switched_off() const noexcept { return switched_off_; }
  void switch_on() { switched_off_.clear(); }

  // ---- what people ask

  /// Nothing is sent until release(), and what comes waits; `why` is not empty.
  void hold(std::string why) { held_ = std::move(why); }
  void release() { held_.clear(); }
  /// Who holds it, and why; empty: nobody does.
  [[nodiscard]] const std::string& held() const noexcept { return held_; }
  /// The far side is asked at once: no pause of breaker or Retry-After is waited for.
  void resume() {
    breaker_.close();
    paused_until_ = {};
    restored_pause_ = {};
    throttled_ = 0;
  }
  [[nodiscard]] core::WallTime breaker_until() const noexcept { return breaker_.until(); }
  [[nodiscard]] core::WallTime paused_until() const noexcept { return paused_until_; }

 private:
  TokenBucket bucket_;
  Breaker breaker_;
  LaneWidth width_;
  std::uint32_t under_way_ = 0;
  std::set<std::uint64_t> failed_under_way_;  // tickets
  std::uint64_t arrived_ = 0;
  std::uint32_t throttled_ = 0;
  core::WallTime paused_until_{};
  core::Duration restored_pause_{};
  std::string switched_off_;
  std::string held_;
};

}  // namespace tocsin::actions
