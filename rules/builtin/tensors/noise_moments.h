// How independent normal numbers must look in the numbers of a summary: what gradient_noise compares with.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "core/frame.h"
#include "rules/contract/whole.h"

namespace tocsin::rules {

/// Of n independent numbers of a normal distribution around 0 the mean size divided by the root of the
/// mean square is √(2/π), with a standard deviation of √((1 − 3/π) / n): what is left of the errors of
/// the two by the delta method. Their sum by the root of the sum of squares has deviation 1. Trivially copyable.
struct NoiseTensor {
  static constexpr double kMost = 4;       // deviations of the size of one tensor
  static constexpr double kSum = 4.5;      // and of its sum, of which there are as many
  static constexpr double kLargest = 1.6;  // by √(2 ln n), about the largest of n

  double n = 0;
  double size = 0;  // deviations from √(2/π)
  double sum = 0;   // deviations from 0
  double rms = 0;
  bool normal = false;

  explicit NoiseTensor(const core::SummaryRow& row) : n(static_cast<double>(row.count)) {
    rms = std::sqrt(row.sumsq / n);
    if (!(rms > 0) || !std::isfinite(rms)) return;
    const double expected = std::sqrt(2 * std::numbers::inv_pi);
    const double deviation = std::sqrt((1 - 3 * std::numbers::inv_pi) / n);
    size = (row.abs_sum / n / rms - expected) / deviation;
    sum = row.sum / (rms * std::sqrt(n));
    const double largest = std::max(std::fabs(row.min), std::fabs(row.max));
    normal = std::fabs(size) < kMost && std::fabs(sum) < kSum &&
             largest < kLargest * rms * std::sqrt(2 * std::log(n));
  }
};

/// What the tensors of one saved step, or of several, come to.
struct NoiseMoments {
  static constexpr double kPooled = 3;  // deviations of all sizes together
  static constexpr double kSpread = 4;  // of the sums of squares, each of which should be 1

  double tensors = 0;
  double n = 0;
  double sizes = 0;  // Σ size · √n
  double size_squares = 0;
  double sum_squares = 0;

  void add(const NoiseTensor& one) {
    ++tensors;
    n += one.n;
    sizes += one.size * std::sqrt(one.n);
    size_squares += one.size * one.size;
    sum_squares += one.sum * one.sum;
  }
  void merge(const NoiseMoments& other) {
    tensors += other.tensors;
    n += other.n;
    sizes += other.sizes;
    size_squares += other.size_squares;
    sum_squares += other.sum_squares;
  }
  /// Mean size by the root of the mean square, of all together: √(2/π) = 0.798 of normal numbers.
  [[nodiscard]] double size() const {
    return std::sqrt(2 * std::numbers::inv_pi) +
           sizes / n * std::sqrt(1 - 3 * std::numbers::inv_pi);
  }
  [[nodiscard]] bool normal() const {
    const double most = kSpread * std::sqrt(2 * tensors);
    return std::fabs(sizes) < kPooled * std::sqrt(n) && std::fabs(size_squares - tensors) < most &&
           std::fabs(sum_squares - tensors) < most;
  }
};

}  // namespace tocsin::rules
