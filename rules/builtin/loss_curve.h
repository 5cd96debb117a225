// The curve test of loss_not_decreasing's default preset: medians of points that are means of
// losses.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>

#include "rules/rule.h"

namespace tocsin::rules {

/// Kinds of loss_not_decreasing, in the order of their names there.
enum LossKind : unsigned { kPlateau, kIncrease, kStuck, kEarly, kRise, kLost };

struct LossPoint {
  std::int64_t step = 0;
  double loss = 0;
};

/// Trivially copyable state and its transition.
struct LossCurve {
  static constexpr std::uint32_t kMedian = 5;
  static constexpr std::uint32_t kStuckPoints = 4;

  double sum = 0;  // of the values since the last point
  std::uint32_t values = 0;
  std::uint32_t seen = 0;                // points so far
  std::array<double, kMedian> points{};  // newest last
  LossPoint now{};
  std::int64_t last_point = 0;
  double first_point = 0;
  double first = 0;
  double best = 0;
  double target = 0;  // what the next improvement is measured against
  std::int64_t best_step = 0;
  std::uint32_t without = 0;  // points since an improvement
  std::uint32_t rising = 0;
  std::uint32_t lost = 0;

  /// Takes one loss; nullopt while no new point (num_steps after the last) is due.
  std::optional<Verdict> judge(std::int64_t step, double loss, std::int64_t num_steps) {
    if (!std::isfinite(loss)) return kInsufficient;
    sum += loss;
    ++values;
    if (seen > 0 && distance(step, last_point) < num_steps) return std::nullopt;
    const double point = sum / values;
    sum = 0;
    values = 0;
    last_point = step;
    std::rotate(points.begin(), points.begin() + 1, points.end());
    points.back() = point;
    ++seen;
    now = {step, point};
    if (seen == 1) {
      first_point = point;
      return kInsufficient;
    }
    unsigned kinds = 0;
    if (point > 2 * std::fabs(first_point)) kinds |= 1U << kEarly;
    if (seen >= kMedian) kinds |= judge_median();
    if (kinds != 0) return Verdict{Outcome::hit, static_cast<std::uint8_t>(kinds)};
    return seen < kMedian ? kInsufficient : kOk;
  }

 private:
  [[nodiscard]] double median(std::uint32_t size) const {
    std::array<double, kMedian> sorted = points;
    auto* const begin = sorted.data() + (kMedian - size);
    std::sort(begin, sorted.data() + kMedian);
    return begin[size / 2];
  }

  unsigned judge_median() {
    const double v = median(kMedian);
    if (seen == kMedian) {
      first = best = target = v;
      best_step = now.step;
      return 0;
    }
    if (v < best) {
      best = v;
      best_step = now.step;
    }
    if (v <= target - 0.01 * std::fabs(target)) {
      target = v;
      without = 0;
    } else {
      ++without;
    }
    unsigned kinds = 0;
    // Written so that it means the same for negative losses: less than 10 % gained.
    const double gain = first - best;
    if (without >= kStuckPoints && gain < 0.1 * std::fabs(first)) kinds |= 1U << kStuck;
    const double margin = 0.5 * std::max(std::fabs(best), 0.5 * std::fabs(first));
    rising = v > best + margin ? rising + 1 : 0;
    if (rising >= 3) kinds |= 1U << kRise;
    const bool back = gain > 0.05 * std::fabs(first) && median(3) > best + 0.5 * gain;
    lost = back ? lost + 1 : 0;
    if (lost >= 2) kinds |= 1U << kLost;
    return kinds;
  }
};

}  // namespace tocsin::rules
