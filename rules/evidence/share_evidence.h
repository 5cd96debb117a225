// Evidence about a share of successes, valid at any time: it may be looked at after each observation.
//
// H₀ "the share is at least p₀". For a share q < p₀ that is fixed beforehand the product of q/p₀ per
// success and (1 − q)/(1 − p₀) per failure is a non-negative supermartingale under H₀, so the
// probability that it ever reaches 1/α is at most α (Ville). So is a weighted mean of several such products.
// q: p₀ less 1, 2, 4 and 8 margins, the first, "no information", with five eighths of the weight.
// Only the two counts matter: neither the order nor the batches.
// It takes about ln(1/α) / KL(w‖p₀) observations.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

namespace tocsin::rules {

/// Independent observations of success or failure. Trivially copyable; the counts of two add up.
struct ShareCounts {
  static constexpr std::array<double, 4> kMargins{1, 2, 4, 8};
  static constexpr std::array<double, 4> kWeights{0.625, 0.125, 0.125, 0.125};

  double wins = 0;
  double pairs = 0;

  void add(double more_wins, double more_pairs) {
    wins += more_wins;
    pairs += more_pairs;
  }
  [[nodiscard]] double share() const { return pairs > 0 ? wins / pairs : 0.5; }
  /// ln of the evidence against "the share is at least `p`".
  [[nodiscard]] double against_at_least(double p, double margin) const {
    return evidence(p, -margin);
  }
  /// ln of the evidence against "the share is at most `p`".
  [[nodiscard]] double against_at_most(double p, double margin) const {
    return evidence(p, margin);
  }

 private:
  [[nodiscard]] double evidence(double p, double margin) const {
    std::array<double, kMargins.size()> logs{};
    for (std::size_t i = 0; i < logs.size(); ++i) {
      const double q = std::clamp(p + kMargins[i] * margin, kLeast, 1 - kLeast);
      logs[i] = wins * std::log(q / p) + (pairs - wins) * std::log((1 - q) / (1 - p));
    }
    const double most = *std::max_element(logs.begin(), logs.end());
    double sum = 0;
    for (std::size_t i = 0; i < logs.size(); ++i) sum += kWeights[i] * std::exp(logs[i] - most);
    return most + std::log(sum);
  }
  static constexpr double kLeast = 0.01;  // a share beyond it tells no sooner
};

/// ln(Σ exp): of evidence in a mixture whose weights add up to 1 at most, which is evidence again.
inline double log_sum(double a, double b) {
  const double most = std::max(a, b);
  return std::isinf(most) ? most : most + std::log(std::exp(a - most) + std::exp(b - most));
}

/// A share that was fine and is not any more: begun anew whenever nothing speaks against H₀ (the
/// CUSUM form, E ← max(E, 1)·factor). Under H₀ E reaches 1/α once in 1/α observations at most.
struct ShareFall {
  ShareCounts since;

  /// True: it begins anew with what comes next.
  bool add(double wins, double pairs, double p, double margin) {
    since.add(wins, pairs);
    if (since.against_at_least(p, margin) > 0) return false;
    since = {};
    return true;
  }
};

/// How many observations of a share `w` decide against "at least p" on average.
inline double observations_needed(double w, double p, double alpha) {
  const double kl = w * std::log(w / p) + (1 - w) * std::log((1 - w) / (1 - p));
  return std::ceil(-std::log(alpha) / kl);
}

}  // namespace tocsin::rules
