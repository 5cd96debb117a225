// Whether a training loss stands: `stuck` of course. Its values are looked at when their number has doubled; then the newest
// three doublings (an eighth to a quarter of all, a quarter to a half, the newer half) are compared with each other and
// with what came before.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "rules/builtin/losses/loss_levels.h"
#include "rules/evidence/doubled_looks.h"

namespace tocsin::rules {

/// Trivially copyable, without padding.
struct LossLooks {
  static constexpr double kPairs = 4;  // comparisons of a look
  static constexpr double kArrival =
      0.01;  // of a run: chance that a loss is said not to arrive that does so with the last update

  DoubledLooks values;  // of the loss with its sign changed
  double falls = 0;     // 1: at the newest look a later doubling lay surely below an earlier one
  double fell = 0;      // 1: at any look, or the newest below the beginning
  double stands = 0;    // 1: no later doubling of the newest three lay below an earlier one
  double short_of = 0;  // 1: and it is above what it must fall to, and does not get there
  double compared = 0;  // 1: with one constant answer
  double from = 0;      // where the newest half begins
  double level = 0;     // of the newest half
  double fall = 0;      // of it, from the half before; with the bound of what it could be
  double fall_high = 0;

  /// What the loss must fall to, and by how much that lies below one constant answer, or the beginning.
  struct Target {
    double level = std::numeric_limits<double>::quiet_NaN();  // NaN: not known
    double margin = 0;
    bool constant = false;  // below one constant answer
  };

  /// `warm`: step since which the rate has not been larger than ever.
  void take(double loss, double step, Target target, double warm, double end,
            const CourseBounds& bounds) {
    if (!values.add(1, -loss, 1, step)) return;
    const double spent = bounds.alpha * std::exp2(-values.looks);
    const BlockMean now = values.mean(0);
    const double t = student_quantile(spent / kPairs, now.blocks - 2);
    const double quarter = mean_of(16, 32);
    const double eighth = mean_of(8, 16);
    const double start = mean_of(0, 8);
    const auto lower = [&](double later, double later_n, double earlier, double earlier_n) {
      const double error = now.line_error * std::sqrt(now.blocks * (1 / later_n + 1 / earlier_n));
      const double same = LossLevels::kRounding * (std::fabs(later) + std::fabs(earlier));
      return later - earlier > std::max(t * error, same);  // of negative losses
    };
    from = values.from();
    level = -now.mean;
    fall = now.mean - quarter;
    fall_high = fall + t * now.line_error * std::sqrt(3.0);
    falls = lower(now.mean, 32, quarter, 16) || lower(now.mean, 32, eighth, 8) ||
                    lower(quarter, 16, eighth, 8)
                ? 1
                : 0;
    if (falls != 0 || lower(now.mean, 32, start, 8)) fell = 1;
    const bool warmed = from >= warm;
    stands = falls == 0 && warmed ? 1 : 0;
    const BlockMean above = values.mean(-target.level);  // what the loss lacks to it, negative
    const double arrival = kArrival * std::exp2(-values.looks);
    const bool open = stands != 0 && (target.constant || fell == 0);
    short_of = open && above.upper(spent) < 0 && above.upper_at(end, arrival) < 0 &&
                       above.rise(arrival) < target.margin
                   ? 1
                   : 0;
    compared = target.constant ? 1 : 0;
  }

 private:
  [[nodiscard]] double mean_of(std::size_t from_block, std::size_t to_block) const {
    DoubledLooks::Block out;
    for (std::size_t i = from_block; i < to_block; ++i) out.add(values.blocks[i]);
    return out.difference / out.weight;
  }
};

}  // namespace tocsin::rules
