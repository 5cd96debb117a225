// Times taken in turns, and how sure a ratio of two of their quantiles is.
#pragma once

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "bench/bench_report.h"

namespace tocsin::bench {

/// What one side took, turn by turn. Samples of one turn are no strangers to each other (a pause of
/// the broker hits several), so turns are what is drawn again.
using Turns = std::vector<std::vector<double>>;

inline std::vector<double> joined(const Turns& turns) {
  std::vector<double> all;
  for (const auto& one : turns) all.insert(all.end(), one.begin(), one.end());
  return all;
}

/// From the 5th to the 95th percentile of quantile `q` of `ours` over that of `floor`, when turns
/// are drawn with replacement, pair by pair: the two that stood side by side saw the same machine.
inline std::pair<double, double> ratio_interval(const Turns& ours, const Turns& floor, double q) {
  const std::size_t pairs = std::min(ours.size(), floor.size());
  if (pairs == 0) return {0, 0};
  constexpr int kDraws = 500;
  std::mt19937 random{1};
  std::uniform_int_distribution<std::size_t> any(0, pairs - 1);
  std::vector<double> ratios;
  for (int i = 0; i < kDraws; ++i) {
    Turns a;
    Turns b;
    for (std::size_t k = 0; k < pairs; ++k) {
      const std::size_t at = any(random);
      a.push_back(ours[at]);
      b.push_back(floor[at]);
    }
    const double base = quantile(joined(b), q);
    if (base > 0) ratios.push_back(quantile(joined(a), q) / base);
  }
  return {quantile(ratios, 0.05), quantile(ratios, 0.95)};
}

}  // namespace tocsin::bench
