// Of rounds of boosting: whether another metric of the same data still gains, where a loss has turned. A log
// loss that is overconfident, or whose positives weigh more in training than in the metric, rises while the
// order of the scores gets better. overfit and overtraining ask it.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "rules/builtin/shared/metric_name.h"

namespace tocsin::rules {

/// Course of one growing metric, a value per round. Trivially copyable.
struct GainingMetric {
  static constexpr std::uint8_t kKey = 0xFD;  // in the place of a mode
  static constexpr double kLeast = 3;         // values
  static constexpr double kNewest = 0.1;      // of the values: its best must be one of these
  static constexpr double kBack = 0.1;        // of its gain: what it may have given back

  double values = 0;
  double first = 0;
  double best = 0;
  double best_at = 0;  // so many values had come
  double newest = 0;

  void take(double value) {
    ++values;
    newest = value;
    if (values == 1) first = best = value;
    if (value < best || values == 1) return;
    if (value > best) best_at = values;
    best = value;
  }
  [[nodiscard]] bool gains() const {
    return values >= kLeast && best > first && best_at >= (1 - kNewest) * values &&
           best - newest <= kBack * (best - first);
  }
};

inline bool is_gaining_kind(const ReadSeries& one, const StepPoint& point) {
  return point.mode != core::Mode::eval && one.name.set != 0 && one.grows &&
         std::isfinite(one.value->finite);
}

inline void remember_gains(SeriesMemory& memory, const std::vector<ReadSeries>& all,
                           const StepPoint& point) {
  for (const ReadSeries& one : all) {
    if (!is_gaining_kind(one, point)) continue;
    auto* course = memory.of<GainingMetric>({one.value->name, GainingMetric::kKey});
    if (course != nullptr) course->take(one.value->finite);
  }
}

/// Whether a growing metric of the data of the loss `loss` still gains, in this very round.
inline bool another_gains(SeriesMemory& memory, const std::vector<ReadSeries>& all,
                          const ReadSeries& loss, const StepPoint& point) {
  if (loss.grows || loss.name.set == 0) return false;
  for (const ReadSeries& one : all) {
    if (one.name.set != loss.name.set || !is_gaining_kind(one, point)) continue;
    const auto* course = memory.of<GainingMetric>({one.value->name, GainingMetric::kKey});
    if (course != nullptr && course->gains()) return true;
  }
  return false;
}

}  // namespace tocsin::rules
