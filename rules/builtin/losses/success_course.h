// The course of a metric that says how well the task is done, beside a loss that may not: that of a policy, of
// a value, or of a penalty that grows with what was learned. loss_not_decreasing asks it.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "rules/builtin/losses/loss_curve.h"
#include "rules/builtin/losses/loss_noise.h"
#include "rules/builtin/shared/metric_name.h"
#include "rules/contract/loss_course.h"

namespace tocsin::rules {

/// Of the first such metric of the training set. Trivially copyable.
struct SuccessCourse {
  static constexpr double kSure = 2.5;  // errors of a line through all values
  static constexpr double kLeast = 20;  // values that it is made of
  LossCourse course;                    // negated, so that it falls
  LossTrend gains;                      // negated too
  std::uint64_t name = 0;               // 0: there is none yet

  void remember(const StepPoint& point, const std::vector<ReadSeries>& all) {
    for (const ReadSeries& one : all) {
      const bool metric = one.value->role == core::Role::metric;
      if (!metric || !one.trains || !is_success(one.value->text)) continue;
      if (name == 0) name = one.value->name;
      if (name != one.value->name) continue;
      course.add(name, point.step, -one.value->value);
      if (std::isfinite(one.value->value)) gains.add(-one.value->value);
      if (course.lost() >= LossCourse::kLevel) gains = {};  // it begins anew
    }
  }
  /// Where what a verdict says of the loss began.
  struct Since {
    std::int64_t first = 0;
    std::int64_t best = 0;
    std::int64_t jump = 0;
  };
  /// The verdict without the kinds of a hit since whose begin what is wanted has surely grown: the loss says no
  /// more how well the training goes.
  [[nodiscard]] Verdict unless_better(Verdict verdict, Since since) const {
    if (verdict.outcome != EvaluationOutcome::hit) return verdict;
    const auto drop = [&](unsigned kind, bool better) {
      if (better) verdict.kinds = static_cast<std::uint8_t>(verdict.kinds & ~(1U << kind));
    };
    drop(kStuck, grows());
    drop(kEarly, grown_since(since.first));
    drop(kRise, grown_since(since.best));
    drop(kLost, grown_since(since.best));
    drop(kJump, grown_since(since.jump));
    return verdict.kinds == 0 ? kInsufficient : verdict;
  }

 private:
  /// Whether it grows, all values taken together.
  [[nodiscard]] bool grows() const {
    return course.lost() == 0 && gains.n >= kLeast && gains.gain() > kSure * gains.error();
  }
  /// Whether it has surely grown since a step.
  [[nodiscard]] bool grown_since(std::int64_t step) const { return course.fallen_since(step); }
};

}  // namespace tocsin::rules
