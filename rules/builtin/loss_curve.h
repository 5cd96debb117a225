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

/// A straight line through all points, and how well it is known. Trivially copyable.
struct LossTrend {
  double n = 0;
  double mean_x = 0;
  double mean_y = 0;
  double xx = 0;
  double xy = 0;
  double yy = 0;

  void add(double y) {
    const double x = n++;
    const double dx = x - mean_x;
    const double dy = y - mean_y;
    mean_x += dx / n;
    mean_y += dy / n;
    xx += dx * (x - mean_x);
    xy += dx * (y - mean_y);
    yy += dy * (y - mean_y);
  }
  /// By how much the line falls from the first point to the last.
  [[nodiscard]] double gain() const { return -xy / xx * (n - 1); }
  /// Its standard error, for at least 3 points.
  [[nodiscard]] double error() const {
    const double rest = std::max(yy - xy * xy / xx, 0.0) / (n - 2);
    return std::sqrt(rest / xx) * (n - 1);
  }
};

/// Trivially copyable state and its transition.
struct LossCurve {
  static constexpr std::uint32_t kMedian = 5;
  static constexpr std::uint32_t kStuckPoints = 4;
  /// Values behind each further step between two points: a job that brings few values, as 40
  /// boosting rounds are, has a point for each.
  static constexpr std::uint64_t kValuesPerStep = 8;

  double sum = 0;  // of the values since the last point
  std::uint32_t values = 0;
  std::uint32_t seen = 0;                // points so far
  std::uint64_t brought = 0;             // finite values so far
  std::array<double, kMedian> points{};  // newest last
  LossPoint now{};
  std::int64_t last_point = 0;
  std::int64_t first_step = 0;
  double first_point = 0;
  double first = 0;
  double best = 0;
  std::array<double, kStuckPoints> recent{};  // the newest v, oldest first
  double earlier = HUGE_VAL;                  // the least v before those
  std::uint32_t medians = 0;                  // v so far
  std::int64_t best_step = 0;
  double wobble = 0;  // Σ |difference of two points in a row|
  LossTrend trend;
  std::uint32_t doubled = 0;
  std::uint32_t rising = 0;
  std::uint32_t lost = 0;

  /// Takes one loss; nullopt while no new point is due. Points are as many steps apart as the
  /// values so far allow, `num_steps` at most. `noise`: how much the scatter of the points counts; 0
  /// judges as if they had none.
  std::optional<Verdict> judge(std::int64_t step, double loss, std::int64_t num_steps,
                               double noise) {
    if (!std::isfinite(loss)) return kInsufficient;
    if (brought == 0) first_step = step;
    const auto earned = static_cast<std::int64_t>(
        std::min<std::uint64_t>(brought / kValuesPerStep, static_cast<std::uint64_t>(num_steps)));
    ++brought;
    sum += loss;
    ++values;
    if (seen > 0 && distance(step, last_point) < std::max<std::int64_t>(earned, 1)) {
      return std::nullopt;
    }
    // A single value among those that will once be averaged may be one bad batch.
    const bool lone = noise > 0 && num_steps > 1 && values == 1;
    take(step, sum / values);
    sum = 0;
    values = 0;
    if (seen == 1) return kInsufficient;
    unsigned kinds = judge_early(lone);
    if (seen >= kMedian) kinds |= judge_median(num_steps, noise);
    if (kinds != 0) return Verdict{Outcome::hit, static_cast<std::uint8_t>(kinds)};
    return seen < kMedian ? kInsufficient : kOk;
  }

 private:
  void take(std::int64_t step, double point) {
    if (seen > 0) wobble += std::fabs(point - points.back());
    if (seen == 0) first_point = point;
    std::rotate(points.begin(), points.begin() + 1, points.end());
    points.back() = point;
    last_point = step;
    now = {step, point};
    trend.add(point);
    ++seen;
  }

  [[nodiscard]] double median(std::uint32_t size) const {
    std::array<double, kMedian> sorted = points;
    auto* const begin = sorted.data() + (kMedian - size);
    std::sort(begin, sorted.data() + kMedian);
    return begin[size / 2];
  }

  unsigned judge_early(bool lone) {
    doubled = now.loss > 2 * std::fabs(first_point) ? doubled + 1 : 0;
    return doubled >= (lone ? 2U : 1U) ? 1U << kEarly : 0;
  }

  unsigned judge_median(std::int64_t num_steps, double noise) {
    const double v = median(kMedian);
    if (++medians == 1) {
      first = best = v;
      best_step = now.step;
    }
    if (v < best) {
      best = v;
      best_step = now.step;
    }
    if (medians > kStuckPoints) earlier = std::min(earlier, recent.front());
    std::rotate(recent.begin(), recent.begin() + 1, recent.end());
    recent.back() = v;
    unsigned kinds = 0;
    // Written so that it means the same for negative losses.
    const double gain = first - best;
    const double margin = 0.5 * std::max(std::fabs(best), 0.5 * std::fabs(first));
    rising = v > best + margin ? rising + 1 : 0;
    if (rising >= 3) kinds |= 1U << kRise;
    // A gain that noise alone makes is none that could be lost: the least of many medians lies about
    // two deviations below the first, and two points in a row differ by 1.13 on average.
    const bool real = gain > std::max(0.05 * std::fabs(first), noise * 3 * wobble / (seen - 1));
    const bool back = real && median(3) > best + 0.5 * gain;
    lost = back ? lost + 1 : 0;
    if (lost >= 2) kinds |= 1U << kLost;
    // The first steps of a job are a warm-up: that they gain little says nothing yet, unless there is
    // no gain at all.
    const bool stands = warm(num_steps) ? flat(noise) : still(noise);
    if (gain < 0.1 * std::fabs(first) && pauses() && stands) kinds |= 1U << kStuck;
    return kinds;
  }

  [[nodiscard]] bool warm(std::int64_t num_steps) const {
    const auto age =
        std::max<std::int64_t>(static_cast<std::int64_t>(brought), distance(now.step, first_step));
    return age / 2 >= num_steps;
  }

  /// No improvement of 1 % over the latest points.
  [[nodiscard]] bool pauses() const {
    const double least = *std::min_element(recent.begin(), recent.end());
    return medians > kStuckPoints && least > earlier - 0.01 * std::fabs(earlier);
  }

  /// The points as a whole tell that hardly anything was gained, and no gain is in sight: with noisy
  /// losses they need to be many until they do, and a slow job has gained something by then.
  [[nodiscard]] bool flat(double noise) const {
    if (noise == 0) return true;
    const double size = std::fabs(first);
    const double gained = trend.gain();
    const double error = noise * trend.error();
    return gained + 2 * error < 0.03 * size && gained <= std::max(error, 0.02 * size);
  }

  /// They tell that there is no movement at all.
  [[nodiscard]] bool still(double noise) const {
    if (noise == 0) return true;
    return std::fabs(trend.gain()) + 2 * noise * trend.error() < 0.001 * std::fabs(first);
  }
};

}  // namespace tocsin::rules
