// Keeps the cost of capturing below its share of the training time: widens the grid when the
// average is above, narrows it again when there is room.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/time.h"

namespace tocsin::hook {

/// Counts only what the grid controls, the sampled steps; what every step costs cannot be stretched
/// away. Steps shorter than 5 ms count as 5 ms: below that a share means nothing.
///
/// What costs next to nothing (losses, labels, predictions) has a grid of its own, so that a costly
/// capture does not take it from the rules that live on it: as it is for its first samples, of
/// which a short run has no more, and then as long as it takes no more than half of the limit. The
/// other half at least is the rest's.
class Governor {
 public:
  explicit Governor(double limit) : limit_(limit) {}

  enum class Kind : std::uint8_t { costly, small };
  /// By how much the grids of both kinds are widened.
  struct Stretch {
    std::int64_t costly = 1;
    std::int64_t small = 1;
    friend bool operator==(const Stretch&, const Stretch&) = default;
  };

  static constexpr core::Duration kShortestStep = std::chrono::milliseconds(5);
  static constexpr std::int64_t kMostStretch = 1024;
  static constexpr int kFirstSamples = 24;

  void sampled(core::Duration cost, Kind kind = Kind::costly) {
    (kind == Kind::small ? small_ : costly_).cost += cost;
    small_sampled_ = small_sampled_ || kind == Kind::small;
  }

  /// A step took `wall` from end to end. `grid`: steps between samples before stretching. True when
  /// a factor has changed.
  bool step(core::Duration wall, std::int64_t grid) {
    wall_ += std::max(wall, kShortestStep);
    if (std::exchange(small_sampled_, false)) small_samples_ += small_samples_ < kFirstSamples;
    if (++steps_ < grid * std::max(stretch_.costly, stretch_.small)) return false;
    const double wall_time = static_cast<double>(wall_.count());
    const double costly = costly_.take(wall_time);
    const double small = small_.take(wall_time);
    wall_ = core::Duration{0};
    steps_ = 0;
    if (warm_up_ > 0) {  // page faults, first allocations, compilation of the model
      --warm_up_;
      return false;
    }
    const Stretch before = stretch_;
    small_.add(small);
    costly_.add(costly);
    if (small_samples_ >= kFirstSamples) small_.follow(limit_ / 2, stretch_.small);
    costly_.follow(limit_ - std::min(std::max(small_.average, 0.0), limit_ / 2), stretch_.costly);
    return stretch_ != before;
  }

  [[nodiscard]] const Stretch& stretch() const noexcept { return stretch_; }
  /// Average share of the last windows; 0 before the first.
  [[nodiscard]] double share() const noexcept {
    return std::max(costly_.average, 0.0) + std::max(small_.average, 0.0);
  }

 private:
  struct Account {
    core::Duration cost{0};
    double average = -1;

    double take(double wall) {
      return static_cast<double>(std::exchange(cost, core::Duration{0}).count()) / wall;
    }
    void add(double share) { average = average < 0 ? share : 0.5 * average + 0.5 * share; }
    void follow(double limit, std::int64_t& stretch) {
      const std::int64_t before = stretch;
      if (average > limit) {
        stretch = std::min(stretch * 2, kMostStretch);
      } else if (average < limit / 4 && stretch > 1) {
        stretch /= 2;
      }
      if (stretch != before) average *= static_cast<double>(before) / static_cast<double>(stretch);
    }
  };

  double limit_;
  Stretch stretch_;
  Account costly_;
  Account small_;
  bool small_sampled_ = false;  // at the present step
  int small_samples_ = 0;
  std::int64_t steps_ = 0;
  int warm_up_ = 1;
  core::Duration wall_{0};
};

}  // namespace tocsin::hook
