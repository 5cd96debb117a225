// Bounds of a share from a count, for any number of trials.
#pragma once

#include <algorithm>
#include <cmath>

namespace tocsin::rules {

/// P(X >= hits) of a binomial X, exact up to rounding. What Clopper and Pearson's lower bound is the inverse of.
inline double at_least_by_chance(double hits, double trials, double share) {
  if (hits <= 0 || share >= 1) return 1;
  if (hits > trials || share <= 0) return 0;
  if (hits <= trials * share) return 1;  // no evidence; the sum below would be long
  double term = hits * std::log(share) + (trials - hits) * std::log1p(-share);
  for (double i = 1; i <= hits; ++i) term += std::log((trials - hits + i) / i);
  double sum = 0;
  double factor = 1;
  for (double i = hits; i <= trials; ++i) {
    sum += factor;
    factor *= (trials - i) / (i + 1) * share / (1 - share);
    if (factor < 1e-18 * sum) break;
  }
  return std::min(1.0, std::exp(term) * sum);
}

/// The largest share under which so few hits are likelier than `alpha`: by Chernoff's bound, so a little too large.
inline double share_at_most(double hits, double trials, double alpha) {
  if (trials <= 0) return 1;
  const double seen = std::min(hits / trials, 1.0);
  const auto cost = [&](double share) {
    const double of_hits = seen > 0 ? seen * std::log(seen / share) : 0;
    const double of_rest = seen < 1 ? (1 - seen) * std::log((1 - seen) / (1 - share)) : 0;
    return trials * (of_hits + of_rest);
  };
  double low = seen;
  double high = 1;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (cost(middle) <= -std::log(alpha) ? low : high) = middle;
  }
  return low;
}

}  // namespace tocsin::rules
