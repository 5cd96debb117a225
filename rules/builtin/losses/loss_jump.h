// Whether a loss has jumped: no smoothing, so that it is told when it happens, and no model of its noise.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "rules/contract/whole.h"

namespace tocsin::rules {

/// Each of the newest five values lies above all of the twenty before them. Of values in a random order
/// one in 53 130 rows of 25 is such; so in long runs they must also lie above by a share of the range
/// of the twenty, which single outliers and slow rises do not; and by a share of all that was gained, of which
/// harder samples late in a training take back next to nothing. Trivially copyable.
struct LossJump {
  static constexpr std::size_t kNew = 5;
  static constexpr std::size_t kOld = 20;
  static constexpr std::uint32_t kStart = 5;  // first values, the least of which is where it began
  static constexpr double kGained = 0.04;
  static constexpr double kFlat = 0.01;  // least range, by the size of the largest

  std::array<double, kOld + kNew> values{};  // newest last
  std::uint32_t known = 0;
  std::uint32_t begun = 0;  // values of the start so far
  double first = HUGE_VAL;  // the least of the start
  double best = HUGE_VAL;   // the least of all
  double most = 0;          // of the twenty
  double least = 0;         // of the five

  /// Takes a value; one that is not finite is left out. `margin`: share of the range; 0 = off.
  bool take(double loss, double margin) {
    if (margin == 0 || !std::isfinite(loss)) return false;
    if (begun < kStart) {
      ++begun;
      first = std::min(first, loss);
    }
    best = std::min(best, loss);
    std::rotate(values.begin(), values.begin() + 1, values.end());
    values.back() = loss;
    known = std::min<std::uint32_t>(known + 1, kOld + kNew);
    if (known < kOld + kNew) return false;
    const auto middle = values.begin() + kOld;
    const auto [low, high] = std::minmax_element(values.begin(), middle);
    most = *high;
    least = *std::min_element(middle, values.end());
    const double range = std::max(most - *low, kFlat * std::fabs(most));
    return least > most + std::max(margin * range, kGained * (first - best));
  }
};

}  // namespace tocsin::rules
