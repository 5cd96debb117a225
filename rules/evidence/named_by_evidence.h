// Which of several hypotheses evidence names: e-BH, the procedure of Benjamini and Hochberg for e-values (Wang and Ramdas 2022).
//
// Of m hypotheses those with the k largest e-values are named, for the largest k with e₍ₖ₎ ≥ m/(k·α). The expected
// share of false ones among those named is α at most, however the e-values depend on each other; where all
// hypotheses are true, anything at all is named with probability α at most.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <vector>

namespace tocsin::rules {

/// From which ln e on a hypothesis is named; +infinity: none is. `logs`: ln of the e-values; what is not there has none.
inline double named_from(std::vector<double> logs, double hypotheses, double log_alpha) {
  std::sort(logs.begin(), logs.end(), std::greater<>());
  for (std::size_t k = logs.size(); k > 0; --k) {
    const double limit =
        std::log(std::max(hypotheses, 1.0)) - std::log(static_cast<double>(k)) - log_alpha;
    if (logs[k - 1] >= limit) return logs[k - 1];
  }
  return HUGE_VAL;
}

}  // namespace tocsin::rules
