// The course of an evaluation beside a training loss that stands. Fine-tunes gain a few percent in noise, and
// samples of a batch scatter by more; what the same data say at each evaluation does not. loss_not_decreasing
// asks it.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "rules/builtin/shared/metric_name.h"

namespace tocsin::rules {

/// Of the first loss that is evaluated, of several of a step that whose name's hash is the least. Trivially
/// copyable.
struct FallingEvaluation {
  static constexpr double kLeast = 0.005;  // of the first value: what has to be gained
  static constexpr double kPart = 0.25;  // of the gain: what may be lost again, and what came late

  std::uint64_t name = 0;  // 0: there is none yet
  std::uint64_t values = 0;
  double first = 0;
  double second = 0;
  double best = 0;
  std::uint64_t best_at = 0;  // so many came before it
  double newest = 0;
  std::uint64_t lost = 0;  // 1: the newest was no finite number

  void remember(const std::vector<ReadSeries>& all) {
    const ReadSeries* found = nullptr;
    for (const ReadSeries& one : all) {
      if (!is_evaluated(one) || (name != 0 && one.value->name != name)) continue;
      if (found == nullptr || one.value->name < found->value->name) found = &one;
    }
    if (found == nullptr) return;
    name = found->value->name;
    take(found->value->value);
  }

  /// The best value is surely below the first and came late, not all of the gain at once, and it was not
  /// given back.
  [[nodiscard]] bool falls() const {
    const double gain = first - best;
    if (values < 2 || lost != 0 || gain < kLeast * std::fabs(first)) return false;
    const bool late = 2 * best_at + 1 >= values;
    const bool at_once = values > 2 && second - best < kPart * gain;
    return late && !at_once && newest - best <= kPart * gain;
  }

  /// The verdict without `kind`, where that is what stands.
  [[nodiscard]] Verdict unless_falls(Verdict verdict, unsigned kind) const {
    if (verdict.outcome != EvaluationOutcome::hit || !falls()) return verdict;
    verdict.kinds = static_cast<std::uint8_t>(verdict.kinds & ~(1U << kind));
    return verdict.kinds == 0 ? kInsufficient : verdict;
  }

 private:
  /// A loss: metrics of an evaluation are times and rates, too.
  static bool is_evaluated(const ReadSeries& one) {
    return one.value->role == core::Role::loss && !one.trains && !one.grows;
  }

  void take(double value) {
    lost = std::isfinite(value) ? 0 : 1;
    if (lost != 0) return;
    if (values == 0) first = value;
    if (values == 1) second = value;
    if (values == 0 || value < best) {
      best = value;
      best_at = values;
    }
    newest = value;
    ++values;
  }
};

}  // namespace tocsin::rules
