// Keeps the cost of capturing below its share of the training time: widens the grid when the
// average is above, narrows it again when there is room.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/time.h"

namespace tocsin::app::client {

/// Counts only what the grid controls, the sampled steps; what every step costs cannot be stretched
/// away. Steps shorter than 5 ms count as 5 ms: below that a share means nothing.
class Governor {
 public:
  explicit Governor(double limit) : limit_(limit) {}

  static constexpr core::Duration kShortestStep = std::chrono::milliseconds(5);
  static constexpr std::int64_t kMostStretch = 1024;

  void sampled(core::Duration cost) { cost_ += cost; }

  /// A step took `wall` from end to end. `grid`: steps between samples before stretching. True when
  /// the factor has changed.
  bool step(core::Duration wall, std::int64_t grid) {
    wall_ += std::max(wall, kShortestStep);
    if (++steps_ < grid * stretch_) return false;
    const double share = static_cast<double>(cost_.count()) / static_cast<double>(wall_.count());
    cost_ = core::Duration{0};
    wall_ = core::Duration{0};
    steps_ = 0;
    if (warm_up_ > 0) {  // page faults, first allocations, compilation of the model
      --warm_up_;
      return false;
    }
    average_ = average_ < 0 ? share : 0.5 * average_ + 0.5 * share;
    const std::int64_t before = stretch_;
    if (average_ > limit_) {
      stretch_ = std::min(stretch_ * 2, kMostStretch);
    } else if (average_ < limit_ / 4 && stretch_ > 1) {
      stretch_ /= 2;
    }
    if (stretch_ == before) return false;
    average_ *= static_cast<double>(before) / static_cast<double>(stretch_);
    return true;
  }

  [[nodiscard]] std::int64_t stretch() const noexcept { return stretch_; }
  /// Average share of the last windows; 0 before the first.
  [[nodiscard]] double share() const noexcept { return std::max(average_, 0.0); }

 private:
  double limit_;
  double average_ = -1;
  std::int64_t stretch_ = 1;
  std::int64_t steps_ = 0;
  int warm_up_ = 1;
  core::Duration cost_{0};
  core::Duration wall_{0};
};

}  // namespace tocsin::app::client
