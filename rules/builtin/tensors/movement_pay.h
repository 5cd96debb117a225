// Whether a loss falls as its updates say that it must: movement's state of one run. O(1).
//
// Let g be the gradient of the update that comes next, on another batch, and Δ the change of the weights by the one before. Where the loss
// is convex along Δ it falls by −⟨g, Δ⟩ at least; the noise of batches is in one factor only, so the mean holds. The same
// product with the gradient that Δ was made of is below zero for noise alone, when a run has converged.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "rules/evidence/doubled_looks.h"

namespace tocsin::rules {

/// Trivially copyable, without padding.
struct PayCourse {
  static constexpr double kErrors = 10;  // of the change of the loss, that it must fall by at least
  static constexpr double kShare = 0.01;  // of that, by which it must have fallen
  static constexpr double kHalf = 2;  // where the loss bends the other way, it falls by half of it

  DoubledLooks losses;  // of the updates that were looked at
  DoubledLooks pays;    // ⟨g, Δ⟩ of these
  // At the newest look:
  double promised = 0;  // what the loss must fall by over the window, at least
  double fallen = 0;    // what it fell by
  double error = 0;     // of that
  double updates = 0;   // that the window covers
  std::uint64_t known = 0;
  std::uint64_t unpaid = 0;

  void add(double loss, double pay, double place, double alpha) {
    pays.add(1, pay, 1, place);
    if (!losses.add(1, loss, 1, place)) return;
    const BlockMean line = losses.mean(0);
    const double spent = alpha * std::exp2(-losses.looks);
    updates = line.length;
    promised = -pays.mean(0).upper(spent) * updates;
    fallen = -line.slope * updates;
    error = line.slope_error * updates;
    const double errors = std::max(kErrors, kHalf * student_quantile(spent, line.blocks - 2));
    known = promised > errors * error ? 1 : 0;
    unpaid = known != 0 && fallen < kShare * promised ? 1 : 0;
  }
};

}  // namespace tocsin::rules
