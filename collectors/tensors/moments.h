// Running statistics of one tensor in binary64: what blocks are merged into.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "core/frame.h"

namespace tocsin::collectors {

/// Statistics of a set of elements; `m2` is about the set's own mean. Plain data, no invariants
/// beyond that.
struct Moments {
  std::uint64_t count = 0;
  double sum = 0;
  double sumsq = 0;
  double m2 = 0;
  double abs_sum = 0;
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();
  std::uint64_t nan = 0;
  std::uint64_t posinf = 0;
  std::uint64_t neginf = 0;
  std::uint64_t zero = 0;
  std::uint64_t negative = 0;
  std::uint64_t flags = 0;  // core::meta flags

  [[nodiscard]] bool finite() const noexcept { return nan + posinf + neginf == 0; }

  /// Joins the statistics of two disjoint sets (Chan, Golub, LeVeque: Updating Formulae and a
  /// Pairwise Algorithm for Computing Sample Variances, 1979). NaN in min or max is kept.
  void merge(const Moments& other) noexcept {
    if (other.count == 0) return;
    if (count == 0) {
      const std::uint64_t kept = flags;
      *this = other;
      flags |= kept;
      return;
    }
    const auto na = static_cast<double>(count);
    const auto nb = static_cast<double>(other.count);
    const double apart = other.sum / nb - sum / na;
    m2 += other.m2 + apart * apart * (na * (nb / (na + nb)));
    count += other.count;
    sum += other.sum;
    sumsq += other.sumsq;
    abs_sum += other.abs_sum;
    min = (min != min || min < other.min) ? min : other.min;
    max = (max != max || max > other.max) ? max : other.max;
    nan += other.nan;
    posinf += other.posinf;
    neginf += other.neginf;
    zero += other.zero;
    negative += other.negative;
    flags |= other.flags;
  }

  /// The same elements `times` over (a broadcast dimension).
  void repeat(std::uint64_t times) noexcept {
    const auto factor = static_cast<double>(times);
    count *= times;
    sum *= factor;
    sumsq *= factor;
    m2 *= factor;
    abs_sum *= factor;
    nan *= times;
    posinf *= times;
    neginf *= times;
    zero *= times;
    negative *= times;
  }

  [[nodiscard]] core::SummaryRow row(core::Dtype dtype) const noexcept {
    core::SummaryRow out;
    out.meta = core::meta::make(dtype, core::Role::other, flags);
    if (count == 0) return out;
    out.count = count;
    out.sum = sum;
    out.sumsq = sumsq;
    out.m2 = m2;
    out.abs_sum = abs_sum;
    out.min = min;
    out.max = max;
    out.nan = nan;
    out.posinf = posinf;
    out.neginf = neginf;
    out.zero = zero;
    out.negative = negative;
    return out;
  }
};

}  // namespace tocsin::collectors
