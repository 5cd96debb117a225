// What the base columns prove about shares of a tensor's elements, where the statistic that counts
// them was not asked for. All of it is inequalities that hold for any data.
#pragma once

#include <algorithm>
#include <cmath>

#include "rules/contract/row.h"

namespace tocsin::rules {

/// A share 0…1 lies between these.
struct Bounds {
  double low = 0;
  double high = 1;
  [[nodiscard]] bool exact() const noexcept { return low == high; }
};

/// Sums are within 1e-5 of the truth (docs/statistics.md); what hangs on them gets some more.
inline constexpr double kSumError = 4e-5;

/// Elements outside the open interval (lo, hi), lo < hi; none of them NaN, at least one element.
/// `counted`: how many there are, where a statistic says it.
inline Bounds share_outside(const Row& row, double lo, double hi, double counted = -1) {
  const double n = row.n();
  if (counted >= 0) return {counted / n, counted / n};
  const double least = row.min();
  const double most = row.max();
  if (least > lo && most < hi) return {0, 0};
  if (most <= lo || least >= hi) return {1, 1};
  Bounds out{(least <= lo ? 1 / n : 0) + (most >= hi ? 1 / n : 0), 1};
  out.low = std::max(out.low, static_cast<double>(row.posinf() + row.neginf()) / n);
  if (!(lo < 0 && hi > 0)) return out;
  const double near = std::min(-lo, hi);  // what is outside is at least this large,
  const double far = std::max(-lo, hi);   // and what is this large is outside
  const double size = row.abs_mean();
  const double square = row.sumsq() / n;
  if (std::isfinite(size)) out.high = std::min(out.high, size / near * (1 + kSumError));
  if (std::isfinite(square)) {
    out.high = std::min(out.high, square / (near * near) * (1 + kSumError));
  }
  const double largest = std::max(-least, most);
  if (std::isfinite(size) && std::isfinite(largest) && largest > far) {
    out.low = std::max(out.low, (size * (1 - kSumError) - far) / (largest - far));
  }
  out.low = std::min(out.low, out.high);
  return out;
}

/// Units, of which each has the same number of samples, with an active share below `percent`, when
/// the share of all samples that are active lies within `active`.
inline Bounds share_of_units(const Bounds& active, double percent) {
  const double limit = percent / 100;
  if (limit <= 0) return {0, 0};  // no share is below 0
  Bounds out;
  // Inactive units hold less than `limit` of theirs, the others all of theirs at most …
  if (limit < 1) out.high = std::clamp((1 - active.low) / (1 - limit), 0.0, 1.0);
  // … and at least `limit`.
  out.low = std::clamp(1 - active.high / limit, 0.0, 1.0);
  // With every sample active there is no unit below, with none they all are.
  if (active.low >= 1) out.high = 0;
  out.low = std::min(out.low, out.high);
  return out;
}

}  // namespace tocsin::rules
