// The values of an evaluation pass, step by step.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "rules/contract/rule.h"

namespace tocsin::rules {

/// The mean over the steps of a pass, each by the mean of its finite values that `counts` takes; NaN without any.
template <typename Counts>
double mean_of_steps(std::span<const PassValue> pass, const Counts& counts) {
  double sum = 0;
  std::uint32_t steps = 0;
  for (auto from = pass.begin(); from != pass.end();) {
    double values = 0;
    std::uint32_t number = 0;
    auto to = from;
    for (; to != pass.end() && to->step == from->step; ++to) {
      if (!std::isfinite(to->value) || !counts(*to)) continue;
      values += to->value;
      ++number;
    }
    if (number > 0) {
      sum += values / number;
      ++steps;
    }
    from = to;
  }
  return steps == 0 ? std::nan("") : sum / steps;
}

}  // namespace tocsin::rules
