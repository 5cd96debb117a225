// Whether an evaluation has turned: `turned` of course. It lies above its own best, three passes in a row, by four deviations of
// a single evaluation and by a share of all that was gained, and a quarter of the passes lie behind that best, and
// training is no worse than it was then: what both lose is training's own.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "rules/builtin/shared/evaluation_curve.h"

namespace tocsin::rules {

/// What training has come to, in the evaluation's unit; NaN: not known.
struct TrainingLevel {
  double first = std::numeric_limits<double>::quiet_NaN();
  double newest = std::numeric_limits<double>::quiet_NaN();
};

/// Trivially copyable, without padding. Less is better: growing metrics come with their sign changed.
struct EvaluationTurn {
  static constexpr double kErrors = 4;
  static constexpr double kInARow = 3;
  static constexpr double kBehind = 0.25;  // of the passes

  EvaluationCurve curve;
  double sign = 1;
  double first = 0;
  double passes = 0;
  double best_at = 0;  // so many had come
  double row = 0;
  double trained_then = std::numeric_limits<double>::quiet_NaN();  // training's level at the best
  double trained_now = std::numeric_limits<double>::quiet_NaN();
  double scale = 0;  // what was gained: here, or in training if that is more

  /// Whether it has turned.
  bool take(std::int64_t step, double value, TrainingLevel training, double share) {
    const double best = curve.best;
    curve.take(step, 0, value, 0, kErrors);
    if (++passes == 1) first = value;
    trained_now = training.newest;
    if (curve.best < best) {
      best_at = passes;
      trained_then = training.newest;
    }
    const double rise = value - curve.best;
    const double learned = training.first - training.newest;
    scale = std::max(first - curve.best, std::isfinite(learned) ? learned : 0.0);
    row = rise > kErrors * curve.spread && rise > share * scale ? row + 1 : 0;
    const bool gains = std::isnan(trained_then) || trained_now < trained_then;
    return row >= kInARow && passes - best_at >= kBehind * passes && gains;
  }
  [[nodiscard]] double rise() const { return curve.value - curve.best; }
  /// The best is no older than a quarter of the passes, or the newest is as good but for its noise.
  [[nodiscard]] bool well() const {
    return passes - best_at < kBehind * passes || rise() <= kErrors * curve.spread;
  }
  /// It has surely gained: training may stand.
  [[nodiscard]] bool gained() const {
    return passes >= kInARow && first - curve.best > kErrors * curve.spread;
  }
};

/// A growing metric of evaluated data. Trivially copyable.
struct HeldMetric {
  static constexpr double kLeast = 3;   // values
  static constexpr double kBack = 0.1;  // of its gain: what it may have given back
  double values = 0;
  double first = 0;
  double best = 0;
  double newest = 0;

  void take(double value) {
    if (values == 0) first = best = value;
    ++values;
    best = std::max(best, value);
    newest = value;
  }
  /// It gains, or keeps what it has gained.
  [[nodiscard]] bool holds() const {
    return values >= kLeast && best > first && best - newest <= kBack * (best - first);
  }
};

}  // namespace tocsin::rules
