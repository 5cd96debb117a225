// The curve test of loss_not_decreasing's default preset: medians of points that are means of
// losses.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>

#include "rules/builtin/losses/loss_noise.h"
#include "rules/contract/rule.h"

namespace tocsin::rules {

/// Kinds of loss_not_decreasing, in the order of their names there.
enum LossKind : unsigned { kPlateau, kIncrease, kStuck, kEarly, kRise, kLost, kJump };

struct LossPoint {
  std::int64_t step = 0;
  double loss = 0;
};

/// What else is known of the step of a loss.
struct LossAround {
  bool whole = false;    // values are of whole data sets, not of batches
  bool warming = false;  // the learning rate has just been larger than ever
  bool rounds = false;   // no mode is set: of boosting rounds, say, which are more than an update
};

/// Trivially copyable state and its transition.
struct LossCurve {
  static constexpr std::uint32_t kMedian = 5;
  static constexpr std::uint32_t kStuckPoints = 4;
  static constexpr std::uint32_t kFalls = 3;  // in a row, each larger: a slow start ends
  static constexpr double kPlateau = 6;       // times num_steps: how long a slow start may take
  static constexpr double kSame = 1e-6;   // of its size: a loss that differs by less has not moved
  static constexpr double kDigits = 1e6;  // a loss is rounded to six places at most,
  static constexpr double kRounded = 1e-6;  // and as exact as numbers are
  /// Values behind each further step between two points: a job that brings few values, as 40
  /// boosting rounds are, has a point for each.
  static constexpr std::uint64_t kValuesPerStep = 8;

  LossBlock since;         // the values since the last point
  std::uint32_t seen = 0;  // points so far
  Gap<4> gap_after_seen{};
  std::uint64_t brought = 0;                // finite values so far
  std::array<double, kMedian> points{};     // newest last
  std::array<LossBlock, kMedian> blocks{};  // the values behind each
  LossBlock best_block;                     // the values of the five points of the least mean
  double best_scatter = 0;                  // of single values when they were found
  LossScatter scatter;
  LossStart start;
  LossPoint now{};
  std::int64_t last_point = 0;
  std::int64_t first_step = 0;
  double first_point = 0;
  double first = 0;
  double best = 0;
  std::array<double, kStuckPoints> recent{};  // the newest v, oldest first
  double earlier = HUGE_VAL;                  // the least v before those
  std::uint32_t medians = 0;                  // v so far
  Gap<4> gap_after_medians{};
  std::int64_t best_step = 0;
  double wobble = 0;  // Σ |difference of two points in a row|
  LossTrend trend;
  std::uint32_t doubled = 0;
  std::uint32_t rising = 0;
  std::uint32_t lost = 0;
  Gap<4> gap_at_end{};

  /// Takes one loss; nullopt while no new point is due. Points are as many steps apart as the
  /// values so far allow, `num_steps` at most. `noise`: how much the scatter of the points counts; 0
  /// judges as if they had none.
  std::optional<Verdict> judge(std::int64_t step, double loss, std::int64_t num_steps, double noise,
                               LossAround around) {
    if (!std::isfinite(loss)) return kInsufficient;
    if (brought == 0) first_step = step;
    const auto earned = static_cast<std::int64_t>(
        std::min<std::uint64_t>(brought / kValuesPerStep, static_cast<std::uint64_t>(num_steps)));
    ++brought;
    since.add(loss);
    scatter.add(loss);
    start.add(loss);
    const bool noisy = noise > 0 && num_steps > 1;
    if (seen > 0 && distance(step, last_point) < std::max<std::int64_t>(earned, 1)) {
      // The next point would say so too, some steps later.
      if (!noisy || !(start.level() > 2 * std::fabs(first_point)) || !start.left(noise) ||
          is_near_zero(start.level())) {
        return std::nullopt;
      }
      now = {step, start.level()};
      return Verdict{EvaluationOutcome::hit, std::uint8_t{1U << kEarly}};
    }
    // A single value among those that will once be averaged may be one bad batch.
    const bool lone = noisy && since.n == 1;
    take(step, since.mean);
    since = {};
    if (seen == 1) return kInsufficient;
    unsigned kinds = judge_early(lone);
    if (noisy && (!start.left(noise) || is_near_zero(now.loss))) kinds = 0;
    if (seen >= kMedian) kinds |= judge_median(num_steps, noise, around);
    if (kinds != 0) return Verdict{EvaluationOutcome::hit, static_cast<std::uint8_t>(kinds)};
    return seen < kMedian ? kInsufficient : kOk;
  }

  /// The values behind the newest points.
  [[nodiscard]] LossBlock newest() const { return values_of(kMedian); }

 private:
  void take(std::int64_t step, double point) {
    if (seen > 0) wobble += std::fabs(point - points.back());
    if (seen == 0) first_point = point;
    std::rotate(points.begin(), points.begin() + 1, points.end());
    points.back() = point;
    std::rotate(blocks.begin(), blocks.begin() + 1, blocks.end());
    blocks.back() = since;
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

  [[nodiscard]] LossBlock values_of(std::uint32_t size) const {
    LossBlock out;
    for (std::uint32_t i = kMedian - size; i < kMedian; ++i) out.merge(blocks[i]);
    return out;
  }
  /// Medians of points that few values stand behind lie below the mean of skewed losses: whether the
  /// newest points are above the best is asked of the means too, and of their errors.
  [[nodiscard]] bool above_best(std::uint32_t size, double margin, double noise) const {
    return noise == 0 || surely_above(values_of(size), best_block, best_scatter, margin, 4 * noise);
  }

  unsigned judge_early(bool lone) {
    doubled = now.loss > 2 * std::fabs(first_point) ? doubled + 1 : 0;
    return doubled >= (lone ? 2U : 1U) ? 1U << kEarly : 0;
  }

  unsigned judge_median(std::int64_t num_steps, double noise, LossAround around) {
    const double v = median(kMedian);
    note_median(v);
    const unsigned kinds = judge_level(v, noise);
    return judge_stuck(num_steps, noise, around) ? kinds | 1U << kStuck : kinds;
  }

  void note_median(double v) {
    if (++medians == 1) {
      first = v;
      best = HUGE_VAL;
    }
    if (v < best) {
      best = v;
      best_step = now.step;
    }
    if (const LossBlock block = values_of(kMedian); medians == 1 || block.mean < best_block.mean) {
      best_block = block;
      best_scatter = scatter.deviation();
    }
    if (medians > kStuckPoints) earlier = std::min(earlier, recent.front());
    std::rotate(recent.begin(), recent.begin() + 1, recent.end());
    recent.back() = v;
  }

  /// Whether it lies far above its best, or has lost what it had gained.
  unsigned judge_level(double v, double noise) {
    unsigned kinds = 0;
    // Written so that it means the same for negative losses.
    const double gain = first - best;
    const double margin = 0.5 * std::max(std::fabs(best), 0.5 * std::fabs(first));
    // What lies further below zero than it began above is no error but an objective, that of a policy
    // for example: it comes back to zero the better it is met. There only more than the first is a loss.
    const double level = noise > 0 && -best > first ? first : best;
    const bool far = noise == 0 || !is_near_zero(v - level);
    rising = v > level + margin && far ? rising + 1 : 0;
    if (rising >= 3 && above_best(kMedian, margin, noise)) kinds |= 1U << kRise;
    // A gain that noise alone makes is none that could be lost: the least of many medians lies about
    // two deviations below the first, and two points in a row differ by 1.13 on average.
    const bool real = gain > std::max(0.05 * std::fabs(first), noise * 3 * wobble / (seen - 1));
    const bool back = real && far && median(3) > level + 0.5 * gain;
    lost = back ? lost + 1 : 0;
    if (lost >= 2 && above_best(3, 0.5 * gain, noise)) kinds |= 1U << kLost;
    return kinds;
  }

  [[nodiscard]] bool judge_stuck(std::int64_t num_steps, double noise, LossAround around) const {
    // The first steps of a job are a warm-up: that they gain little says nothing yet, unless there is
    // no gain at all.
    const double more = std::max(kPlateau * static_cast<double>(num_steps) / age(), 1.0);
    const bool stands = warm(num_steps, around) ? flat(noise, more) : still(noise);
    // While the learning rate still rises, little was tried.
    const bool tried = noise == 0 || !around.warming;
    const bool left = noise > 0 && (gathers_speed() || comes_down() || is_near_zero(0));
    if (first - best < 0.1 * std::fabs(first) && pauses() && stands && tried && !left) return true;
    return noise > 0 && (around.whole || (tried && is_exact(first))) && same();
  }

  /// Values or steps so far, whichever are more.
  [[nodiscard]] double age() const {
    return std::max(static_cast<double>(brought),
                    static_cast<double>(distance(now.step, first_step)));
  }
  /// An objective that begins at zero, and is of both signs, has no size by which anything could be large: that
  /// of a policy whose advantages are centred, say. There a distance must stand out from the scatter by far.
  [[nodiscard]] bool is_near_zero(double distance) const {
    const double deviation = scatter.deviation();
    return !start.positive && std::fabs(first_point) < 3 * deviation && distance < 20 * deviation;
  }
  /// Whole data sets have no noise that could hide a slow start, and rounds are few.
  [[nodiscard]] bool warm(std::int64_t num_steps, LossAround around) const {
    return age() >= (around.whole || around.rounds ? 2 : 4) * static_cast<double>(num_steps);
  }

  /// From the first point on it is one number. Of a whole data set that is sure before any
  /// statistics of noise are; so it is of any loss that is not rounded, for no two batches have the same.
  [[nodiscard]] bool same() const {
    const auto [least, most] = std::minmax_element(points.begin(), points.end());
    const double limit = kSame * std::fabs(first);
    return first != 0 && *most - *least <= limit && first - best <= limit;
  }

  /// No number of a few digits, as rounding makes them.
  static bool is_exact(double x) {
    const double rest = std::fabs(x) * kDigits;
    return std::fabs(rest - std::round(rest)) > kRounded;
  }

  /// No improvement of 1 % over the latest points.
  [[nodiscard]] bool pauses() const {
    const double least = *std::min_element(recent.begin(), recent.end());
    return medians > kStuckPoints && least > earlier - 0.01 * std::fabs(earlier);
  }

  /// The points as a whole tell that hardly anything was gained, and no gain is in sight: with noisy
  /// losses they need to be many until they do, and a slow job has gained something by then.
  /// Healthy networks start slowly too, so in the first 6 · num_steps steps the line is extended so
  /// far (`more` times).
  [[nodiscard]] bool flat(double noise, double more) const {
    if (noise == 0) return true;
    const double size = std::fabs(first);
    const double gained = more * trend.gain();
    const double error = more * noise * trend.error();
    if (gained > 3 * error && gained > 0.003 * size && no_slower()) return false;
    return gained + 2 * error < 0.03 * size && gained <= std::max(error, 0.02 * size);
  }

  /// The latest points lie on the line or below: what was surely gained goes on, as slow starts do.
  [[nodiscard]] bool no_slower() const {
    double mean = 0;
    for (std::uint32_t i = kMedian - kStuckPoints; i < kMedian; ++i) {
      mean += points[i] / kStuckPoints;
    }
    return mean <= trend.height((kStuckPoints - 1) / 2.0);
  }

  /// Each of the latest points lies further below the one before than that did: a saddle is being left, from
  /// which a table that starts at zero, or what begins alike, goes ever faster.
  [[nodiscard]] bool gathers_speed() const {
    double before = 0;
    for (std::uint32_t i = kMedian - kFalls; i < kMedian; ++i) {
      const double fall = points[i - 1] - points[i];
      if (!(fall > before)) return false;
      before = fall;
    }
    return true;
  }

  /// The newest two points lie below the two at the other end of the latest five, by a hundredth and by more than
  /// noise makes: what had risen at first, as where a target moves too, is on its way down.
  [[nodiscard]] bool comes_down() const {
    LossBlock before = blocks[0];
    LossBlock after = blocks[kMedian - 2];
    before.merge(blocks[1]);
    after.merge(blocks[kMedian - 1]);
    const double error = std::sqrt(before.variance() / before.n + after.variance() / after.n);
    return before.mean - after.mean > std::max(0.01 * std::fabs(first), 2.5 * error);
  }

  /// They tell that there is no movement at all.
  [[nodiscard]] bool still(double noise) const {
    if (noise == 0) return true;
    return std::fabs(trend.gain()) + 2 * noise * trend.error() < 0.001 * std::fabs(first);
  }
};

}  // namespace tocsin::rules
