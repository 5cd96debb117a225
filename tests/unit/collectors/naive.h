// The statistics as their definitions say, one element at a time, in long double: what the kernels
// are compared with.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "collectors/tensors/reduce.h"

namespace tocsin::collectors::naive {

inline core::SummaryRow row(core::Dtype dtype, const std::vector<double>& x) {
  core::SummaryRow out;
  out.meta = static_cast<std::uint64_t>(dtype);
  out.count = x.size();
  if (x.empty()) return out;
  long double sum = 0;
  long double sumsq = 0;
  long double abs_sum = 0;
  out.min = std::numeric_limits<double>::infinity();
  out.max = -out.min;
  for (const double v : x) {
    sum += v;
    sumsq += static_cast<long double>(v) * v;
    abs_sum += std::fabs(v);
    if (std::isnan(v)) ++out.nan;
    if (std::isinf(v)) ++(v > 0 ? out.posinf : out.neginf);
    if (v == 0) ++out.zero;
    if (v < 0) ++out.negative;
    if (v < out.min) out.min = v;
    if (v > out.max) out.max = v;
  }
  const long double mean = sum / static_cast<long double>(x.size());
  long double m2 = 0;
  for (const double v : x) m2 += (v - mean) * (v - mean);
  if (out.nan != 0) out.min = out.max = std::nan("");
  out.sum = static_cast<double>(sum);
  out.sumsq = static_cast<double>(sumsq);
  out.abs_sum = static_cast<double>(abs_sum);
  out.m2 = out.non_finite() != 0 ? std::nan("") : static_cast<double>(m2);
  return out;
}

/// Both NaN, both the same infinity, or within `slack`.
inline bool near(double got, double want, double slack) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want)) return got == want;
  return std::fabs(got - want) <= slack;
}

/// Squares this small leave the range of binary64 itself.
inline constexpr double kTiny = 1e-300;

/// Counts, min and max exact; sums within `tolerance` of Σ|x|, squares of themselves.
inline void expect_row(const core::SummaryRow& got, const core::SummaryRow& want, double tolerance,
                       const std::string& where) {
  SCOPED_TRACE(where);
  EXPECT_EQ(got.name, 0U);
  EXPECT_EQ(got.count, want.count);
  EXPECT_EQ(got.nan, want.nan);
  EXPECT_EQ(got.posinf, want.posinf);
  EXPECT_EQ(got.neginf, want.neginf);
  EXPECT_EQ(got.zero, want.zero);
  EXPECT_EQ(got.negative, want.negative);
  EXPECT_EQ(got.meta, want.meta);
  EXPECT_TRUE(near(got.min, want.min, 0)) << got.min << " for " << want.min;
  EXPECT_TRUE(near(got.max, want.max, 0)) << got.max << " for " << want.max;
  EXPECT_TRUE(near(got.sum, want.sum, tolerance * want.abs_sum)) << got.sum << " for " << want.sum;
  EXPECT_TRUE(near(got.abs_sum, want.abs_sum, tolerance * want.abs_sum))
      << got.abs_sum << " for " << want.abs_sum;
  EXPECT_TRUE(near(got.sumsq, want.sumsq, tolerance * want.sumsq + kTiny))
      << got.sumsq << " for " << want.sumsq;
  EXPECT_TRUE(near(got.m2, want.m2, tolerance * want.m2 + kTiny)) << got.m2 << " for " << want.m2;
}

/// Runs `body` once per instruction set of this machine, and leaves the best one chosen.
template <typename Body>
void on_every_target(Body body) {
  force_reduce_target(0);
  for (const std::int64_t target : reduce_targets()) {
    force_reduce_target(target);
    ASSERT_EQ(reduce_target_name(target), reduce_target());
    body(reduce_target_name(target));
  }
  force_reduce_target(0);
}

/// `x` as elements of T in memory.
template <typename T>
std::vector<T> as(const std::vector<double>& x) {
  std::vector<T> out;
  out.reserve(x.size());
  for (const double v : x) out.push_back(static_cast<T>(v));
  return out;
}
template <typename T>
std::vector<double> widened(const std::vector<T>& x) {
  return std::vector<double>(x.begin(), x.end());
}

}  // namespace tocsin::collectors::naive
