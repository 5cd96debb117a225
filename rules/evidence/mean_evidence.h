// Evidence about a mean of numbers between 0 and 1, valid at any time and whatever a step holds.
//
// H₀ "given the past, the next number is `p` on average, or more". Let x = (p − number) / (1 − p): it is −1 at least and 0 or
// less on average, so for any bet λ in [0, 0.9] the product of 1 + λ·x is a non-negative supermartingale, and the
// probability that it ever reaches 1/α is at most α (Ville). So is the mean of several such products.
// Where the number is a share of wins among a step's pairs, the pairs may depend on each other as they like
// (places of one image): ShareCounts (share_evidence.h) takes them for independent.
// A bet of 0.1 fits a step of one pair, one of 0.9 a step of many.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace tocsin::rules {

/// Trivially copyable, without padding.
struct MeanEvidence {
  static constexpr std::array<double, 4> kBets{0.1, 0.2, 0.45, 0.9};

  std::array<double, kBets.size()> logs{};  // of each bet's product
  double sum = 0;
  double number = 0;

  /// Evidence against "at least p" grows with small values.
  void against_at_least(double value, double p) { bet(value, (p - value) / (1 - p)); }
  /// Evidence against "at most p" grows with large values.
  void against_at_most(double value, double p) { bet(value, (value - p) / p); }

  /// ln of the evidence.
  [[nodiscard]] double evidence() const {
    const double most = *std::max_element(logs.begin(), logs.end());
    double total = 0;
    for (const double log : logs) total += std::exp(log - most);
    return most + std::log(total / static_cast<double>(logs.size()));
  }
  [[nodiscard]] double mean() const { return number > 0 ? sum / number : 0.5; }

 private:
  void bet(double value, double x) {
    for (std::size_t i = 0; i < logs.size(); ++i) logs[i] += std::log1p(kBets[i] * x);
    sum += value;
    ++number;
  }
};

}  // namespace tocsin::rules
