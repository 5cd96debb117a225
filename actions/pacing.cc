#include "actions/pacing.h"

#include <algorithm>
#include <cmath>

namespace tocsin::actions {

using core::Duration;
using core::WallTime;

Duration backoff(const RetryConfig& cfg, std::uint32_t failures, double uniform) {
  const double grown = static_cast<double>(cfg.initial.count()) *
                       std::pow(cfg.factor, static_cast<double>(failures > 0 ? failures - 1 : 0));
  const double bound = std::min(grown, static_cast<double>(cfg.max.count()));
  return Duration(static_cast<std::int64_t>(bound * std::clamp(uniform, 0.0, 1.0)));
}

Duration configuration_wait(std::uint32_t failures) {
  const std::uint32_t doublings = std::min<std::uint32_t>(failures > 0 ? failures - 1 : 0, 4);
  return std::min<Duration>(std::chrono::minutes(1LL << doublings), std::chrono::minutes(10));
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

void Breaker::started(WallTime now) {
  if (state_ == State::closed || now < until_) return;
  state_ = State::half_open;
  probing_ = true;
}

void Breaker::finished(bool up, WallTime now) {
  minute_.emplace_back(now, up);
  while (now - minute_.front().first > std::chrono::minutes(1)) minute_.pop_front();
  if (state_ == State::half_open && probing_) {
    probing_ = false;
    if (!up) {
      pause_ = std::min(pause_ * 2, cfg_.max_open);
      return trip(now);
    }
    state_ = State::closed;
    pause_ = cfg_.open;
    in_a_row_ = 0;
    minute_.clear();
    return;
  }
  in_a_row_ = up ? 0 : in_a_row_ + 1;
  // An answer to an attempt from before the trip says nothing new about an open breaker.
  if (up || state_ != State::closed) return;
  const auto failed = std::count_if(minute_.begin(), minute_.end(),
                                    [](const auto& entry) { return !entry.second; });
  const bool mostly = minute_.size() >= 10 && 2 * static_cast<std::size_t>(failed) > minute_.size();
  if (in_a_row_ >= cfg_.failures || mostly) trip(now);
}

void Breaker::trip(WallTime now) {
  state_ = State::open;
  until_ = now + pause_;
}

}  // namespace tocsin::actions
