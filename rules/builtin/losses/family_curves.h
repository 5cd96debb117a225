// How metrics of earlier runs went: a value per piece of training, small enough to be kept of many runs,
// and the range in which a further run is expected.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "rules/contract/archive.h"

namespace tocsin::rules::family {

/// Pieces of training: each of the first 16 steps, then eight per doubling. What a run has in one is
/// compared with what others had in the same.
constexpr std::uint32_t piece_of(std::int64_t step) noexcept {
  if (step < 0) return 0;
  if (step < 16) return static_cast<std::uint32_t>(step);
  const auto width = static_cast<std::uint32_t>(std::bit_width(static_cast<std::uint64_t>(step)));
  const auto part = static_cast<std::uint32_t>((step >> (width - 4)) & 7);
  return 16 + (width - 5) * 8 + part;
}

/// Name of a metric and its mode.
using Key = std::pair<std::uint64_t, std::uint32_t>;
/// Means of a metric, by piece.
using Curve = std::map<std::uint32_t, double>;
using Curves = std::map<Key, Curve>;

/// What one earlier run had.
struct Past {
  std::int64_t ended = 0;  // UTC ns
  Curves curves;

  template <typename A>
  friend void io(A& a, Past& p) {
    io_all(a, p.ended, p.curves);
  }
};

struct Range {
  double median = 0;
  double spread = 0;
  double limit = 0;  // from the median, to either side
  std::size_t runs = 0;
  std::size_t left_out = 0;  // older runs, from which the newer ones have drifted
};

/// Of ascending values; linear between neighbours.
inline double quantile(std::span<const double> sorted, double q) {
  const double place = static_cast<double>(sorted.size() - 1) * q;
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

/// A normal quantile as far out as Student's t of so few runs has it (Cornish and Fisher's series).
inline double widened(double z, std::size_t runs) {
  const auto freedom = static_cast<double>(runs - 1);
  const double cube = z * z * z;
  return z + (cube + z) / (4 * freedom) +
         (5 * cube * z * z + 16 * cube + 3 * z) / (96 * freedom * freedom);
}

/// Where the newest runs lie wholly on one side of all older ones, the older say nothing of runs to come.
/// How many are to be left out; of those that differ so it takes `least` on either side.
inline std::size_t drifted(std::span<const double> oldest_first, std::size_t least) {
  const std::size_t count = oldest_first.size();
  if (count < 2 * least) return 0;
  constexpr double kInf = std::numeric_limits<double>::infinity();
  std::vector<std::pair<double, double>> newer(count + 1, {kInf, -kInf});  // least and greatest
  for (std::size_t i = count; i-- > 0;) {
    newer[i] = {std::min(newer[i + 1].first, oldest_first[i]),
                std::max(newer[i + 1].second, oldest_first[i])};
  }
  double low = kInf;
  double high = -kInf;
  std::size_t out = 0;
  for (std::size_t split = 1; split + least <= count; ++split) {
    low = std::min(low, oldest_first[split - 1]);
    high = std::max(high, oldest_first[split - 1]);
    const bool apart = newer[split].first > high || newer[split].second < low;
    if (split - out < least || !apart) continue;
    out = split;  // what is left may have changed once more
    low = kInf;
    high = -kInf;
  }
  return out;
}

/// Where a further run is expected, after at least `least` (2 or more) of them; nullopt: too few.
inline std::optional<Range> range_of(std::span<const double> oldest_first, std::size_t least,
                                     double z) {
  if (oldest_first.size() < least) return std::nullopt;
  Range out;
  out.left_out = drifted(oldest_first, least);
  std::vector<double> sorted(oldest_first.begin() + static_cast<std::ptrdiff_t>(out.left_out),
                             oldest_first.end());
  std::sort(sorted.begin(), sorted.end());
  out.runs = sorted.size();
  out.median = quantile(sorted, 0.5);
  std::vector<double> away;
  away.reserve(sorted.size());
  for (const double value : sorted) away.push_back(std::fabs(value - out.median));
  std::sort(away.begin(), away.end());
  const double quarters = (quantile(sorted, 0.75) - quantile(sorted, 0.25)) / 1.349;
  out.spread = std::max({1.4826 * quantile(away, 0.5), quarters, 0.01 * std::fabs(out.median)});
  const auto runs = static_cast<double>(out.runs);
  out.limit = widened(z, out.runs) * out.spread * std::sqrt(1 + 1 / runs);
  return out;
}

}  // namespace tocsin::rules::family
