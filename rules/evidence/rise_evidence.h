// Evidence that a mean has risen above a bound, valid at any time, begun anew whenever nothing speaks for it.
//
// H₀ "given the past, the next number is 0 or less on average, and its mean square is 1 at most". Numbers above kMost
// count as kMost: that side speaks against H₀. By Bennett's inequality exp(λ·x − ψ(λ)) with
// ψ(λ) = (exp(λ·kMost) − 1 − λ·kMost) / kMost² is then 1 or less on average. In the CUSUM form, E ← max(E, 1)·factor, E
// reaches 1/α once in 1/α numbers at most; so does the mean over several λ.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace tocsin::rules {

/// Trivially copyable, without padding.
struct RiseEvidence {
  static constexpr double kMost = 8;
  static constexpr std::array<double, 3> kBets{0.125, 0.25, 0.5};
  static constexpr double kFull =
      40;  // ln of the evidence that is kept: more says no more, and would stay

  std::array<double, kBets.size()> logs{};
  double number = 0;  // since it began anew
  double sum = 0;     // of the numbers since, as they are

  static double cost(double bet) {
    return (std::exp(bet * kMost) - 1 - bet * kMost) / (kMost * kMost);
  }
  void add(double x) {
    ++number;
    sum += x;
    const double counted = std::min(x, kMost);
    bool any = false;
    for (std::size_t i = 0; i < logs.size(); ++i) {
      logs[i] = std::clamp(logs[i] + kBets[i] * counted - cost(kBets[i]), 0.0, kFull);
      any = any || logs[i] > 0;
    }
    if (!any) *this = {};
  }
  /// ln of the evidence.
  [[nodiscard]] double evidence() const {
    const double most = *std::max_element(logs.begin(), logs.end());
    double total = 0;
    for (const double log : logs) total += std::exp(log - most);
    return most + std::log(total / static_cast<double>(logs.size()));
  }
  [[nodiscard]] double mean() const { return number > 0 ? sum / number : 0; }
};

/// How many numbers of `mean` (whose scatter is small beside kMost) it takes to reach ln of evidence `enough`.
inline double numbers_needed(double mean, double enough) {
  double best = 0;
  for (const double bet : RiseEvidence::kBets) {
    best = std::max(best, bet * std::min(mean, RiseEvidence::kMost) - RiseEvidence::cost(bet));
  }
  return best > 0 ? std::ceil(enough / best) : HUGE_VAL;
}

}  // namespace tocsin::rules
