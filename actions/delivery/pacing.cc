#include "actions/delivery/pacing.h"

#include <algorithm>
#include <cmath>

namespace tocsin::actions {

using core::Duration;
using core::WallTime;

Duration backoff(const RetryConfig& cfg, std::uint32_t failures, double uniform) {
  const double grown = static_cast<double>(cfg.initial.count()) *
                       std::pow(cfg.factor, static_cast<double>(failures > 0 ? failures - 1 : 0));
  const double bound = std::min(grown, static_cast<double>(cfg.max.count()));
  return std::max(kShortestWait,
                  Duration(static_cast<std::int64_t>(bound * std::clamp(uniform, 0.0, 1.0))));
}

Duration configuration_wait(std::uint32_t failures) {
  const std::uint32_t doublings = std::min<std::uint32_t>(failures > 0 ? failures - 1 : 0, 4);
  return std::min<Duration>(std::chrono::minutes(1LL << doublings), std::chrono::minutes(10));
}

Duration parked_wait(const RetryConfig& cfg, std::uint32_t times) {
  const std::uint32_t doublings = std::min<std::uint32_t>(times > 0 ? times - 1 : 0, 3);
  const Duration longest = std::clamp<Duration>(cfg.max, kShortestWait, std::chrono::hours(24));
  return longest * std::min(5LL << doublings, 30LL);
}

double TokenBucket::refill(WallTime now) {
  if (filled_ == WallTime{}) filled_ = now;
  if (now > filled_ && cfg_.rate > 0) {
    const double passed =
        static_cast<double>((now - filled_).count()) / static_cast<double>(cfg_.per.count());
    tokens_ = std::min(static_cast<double>(cfg_.burst), tokens_ + passed * cfg_.rate);
    filled_ = now;
  }
  return tokens_;
}

void TokenBucket::take(WallTime now) {
  if (cfg_.rate <= 0) return;
  refill(now);
  tokens_ -= 1;
}

WallTime TokenBucket::next(WallTime now) {
  if (ready(now)) return now;
  const double missing = (1 - tokens_) / cfg_.rate * static_cast<double>(cfg_.per.count());
  return now + Duration(static_cast<std::int64_t>(std::ceil(missing)) + 1);
}

void Breaker::started(const std::string& who, WallTime now) {
  if (state_ == State::closed || now < early()) return;
  state_ = State::half_open;
  early_probe_ = now < until_;
  probe_ = who;
}

void Breaker::withdrawn(const std::string& who) {
  if (probe_ != who) return;
  if (state_ == State::half_open) state_ = State::open;
  probe_.clear();
}

void Breaker::not_longer_than_meant(WallTime now) {
  until_ = std::min(until_, now + pause_);
  early_ = std::min(early_, now + step_);
}

void Breaker::close() {
  probe_.clear();
  state_ = State::closed;
  pause_ = cfg_.open;
  in_a_row_ = 0;
  failed_.clear();
  minute_.clear();
}

void Breaker::probed(bool up, WallTime now) {
  probe_.clear();
  if (up) return close();
  if (early_probe_) {  // the pause goes on as it was
    state_ = State::open;
    step_ *= 2;
    early_ = now + step_;
    return;
  }
  pause_ = std::min(pause_ * 2, cfg_.max_open);
  trip(now);
}

void Breaker::finished(const std::string& who, bool up, WallTime now) {
  minute_.emplace_back(now, up);
  while (now - minute_.front().first > std::chrono::minutes(1)) minute_.pop_front();
  if (state_ == State::half_open && probe_ == who) return probed(up, now);
  if (up) {
    in_a_row_ = 0;
    failed_.clear();
  } else {
    ++in_a_row_;
    if (failed_.size() < 2) failed_.insert(who);
  }
  // An answer to an attempt from before the trip says nothing new about an open breaker.
  if (up || state_ != State::closed) return;
  if (failed_.size() < std::min<std::size_t>(2, cfg_.failures)) return;
  const auto failed = std::count_if(minute_.begin(), minute_.end(),
                                    [](const auto& entry) { return !entry.second; });
  const bool mostly = minute_.size() >= 10 && 2 * static_cast<std::size_t>(failed) > minute_.size();
  if (in_a_row_ >= cfg_.failures || mostly) trip(now);
}

void Breaker::trip(WallTime now) {
  state_ = State::open;
  until_ = now + pause_;
  step_ = std::chrono::seconds(1);
  early_ = now + step_;
}

}  // namespace tocsin::actions
