// How the values of a whole run are spread, in bounded memory: counts of bins, and the exact extremes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "rules/contract/archive.h"

namespace tocsin::rules {

/// Of shares (percent, in steps of a half) or of rates (any number from 0 on, in steps of 9 %).
class Spread {
 public:
  enum class Of : std::uint8_t { share, rate };
  Spread() = default;
  explicit Spread(Of of) : of_(of) {}

  /// `value` is finite and not negative.
  void take(double value) {
    min_ = count_ == 0 ? value : std::min(min_, value);
    max_ = count_ == 0 ? value : std::max(max_, value);
    ++count_;
    const auto bin = static_cast<std::size_t>(std::floor(place(value) + 0.5));
    if (bin >= bins_.size()) bins_.resize(bin + 1);
    ++bins_[bin];
  }
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] double min() const noexcept { return min_; }
  [[nodiscard]] double max() const noexcept { return max_; }
  /// Between neighbours in order, linearly (Hyndman and Fan 1996, type 7), to the width of a bin.
  [[nodiscard]] double quantile(double q) const {
    if (count_ == 0) return std::nan("");
    const double at = q * static_cast<double>(count_ - 1);
    const auto below = static_cast<std::uint64_t>(at);
    const double low = number(below);
    const double high = number(std::min(below + 1, count_ - 1));
    return low + (at - static_cast<double>(below)) * (high - low);
  }

  template <typename A>
  friend void io(A& a, Spread& s) {
    io_all(a, s.of_, s.bins_, s.min_, s.max_, s.count_);
  }

 private:
  [[nodiscard]] double place(double value) const {
    return of_ == Of::share ? value * 2 : 8 * std::log2(1 + std::min(value, 1e18));
  }
  /// The value of that rank.
  [[nodiscard]] double number(std::uint64_t rank) const {
    std::size_t bin = 0;
    for (std::uint64_t before = bins_[0]; before <= rank; before += bins_[bin]) ++bin;
    const auto middle = static_cast<double>(bin);
    return std::clamp(of_ == Of::share ? middle / 2 : std::exp2(middle / 8) - 1, min_, max_);
  }

  Of of_ = Of::share;
  std::vector<std::uint32_t> bins_;
  double min_ = 0;
  double max_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace tocsin::rules
