// How an evaluation stands to its own best: what the default presets of overfit and overtraining
// judge.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace tocsin::rules {

/// Trivially copyable. Values are such that less is better (growing metrics come with their sign
/// changed) and finite.
struct EvaluationCurve {
  static constexpr std::uint32_t kSpread = 9;

  double value = 0;
  double best = HUGE_VAL;
  std::int64_t best_step = 0;
  double best_at = 0;  // training steps done when the best was found
  double excess = 0;   // of the value over the best, relative to it
  double spread = 0;   // standard deviation of one evaluation around its own course
  std::uint32_t strikes = 0;
  std::uint32_t passes = 0;
  std::array<double, 2> before{};       // the latest two values, newest first
  std::array<double, kSpread> bends{};  // latest |second differences|

  /// Takes the value of a pass; returns whether it lies more than `ratio` above the best, and more
  /// than `factor` deviations of a single evaluation.
  bool take(std::int64_t step, double trained, double next, double ratio, double factor) {
    value = next;
    bend();
    if (value < best) {
      best = value;
      best_step = step;
      best_at = trained;
    }
    const double rise = value - best;
    excess = rise / std::max(std::fabs(best), 1e-12);
    // The best of many is a lucky one, about two deviations below the course: an evaluation on few
    // samples lies above it most of the time, without any trend.
    const bool above = excess > ratio && rise > factor * spread;
    strikes = above ? strikes + 1 : 0;
    return above;
  }

 private:
  // A steady course, up or down, has no second difference; independent errors have one of √6
  // deviations, three tenths of which are below 0.94. Not their middle: where a course turns, some
  // are large without any error. Of two or three the smallest; one alone tells nothing.
  void bend() {
    if (passes >= 2) {
      bends[(passes - 2) % kSpread] = std::fabs(value - 2 * before[0] + before[1]);
      const std::uint32_t known = std::min(passes - 1, kSpread);
      std::array<double, kSpread> sorted = bends;
      const std::uint32_t place = (known - 1) / 3;
      std::nth_element(sorted.begin(), sorted.begin() + place, sorted.begin() + known);
      spread = known < 2 ? 0 : sorted[place] / 0.94;
    }
    before[1] = before[0];
    before[0] = value;
    ++passes;
  }
};

}  // namespace tocsin::rules
