// Whether the steps of a training have labels of one class too often for steps that are drawn from
// all labels.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace tocsin::rules {

struct ClassOrder {
  std::uint32_t told = 0;  // steps that would hardly have one class by chance
  std::uint32_t pure = 0;  // of those, how many have
  bool sorted = false;
};

/// `sizes`: labels of each of the latest steps, below 0 where they are of one class; `labels`: of
/// each class so far, `total` together.
inline ClassOrder order_of(const std::vector<double>& sizes, const std::vector<double>& labels,
                           double total) {
  constexpr std::uint32_t kLeastSorted = 3;
  constexpr double kByChance = 0.05;  // that a step has one class only
  constexpr double kSure = 1e-6;
  ClassOrder out;
  double chance = 1;
  for (const double size : sizes) {
    double one = 0;  // that all of a step's labels are of one class
    for (const double count : labels) one += std::pow(count / total, std::fabs(size));
    if (one > kByChance) continue;
    ++out.told;
    if (size > 0) continue;
    ++out.pure;
    chance *= one;
  }
  out.sorted = out.pure >= kLeastSorted && 2 * out.pure >= out.told && chance < kSure;
  return out;
}

}  // namespace tocsin::rules
