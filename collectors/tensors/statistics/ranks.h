// Elements by their rank, for statistics that need some of them: quantiles, the median.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "collectors/tensors/elements.h"
#include "collectors/tensors/statistics/magnitudes.h"
#include "collectors/tensors/statistics/statistic.h"

namespace tocsin::collectors {

/// The elements of a tensor, or of a large one kMost of them, one from each of as many equal parts.
class RankedElements {
 public:
  static constexpr std::uint64_t kMost = std::uint64_t{1} << 17;

  /// False: no elements, or a type without an order.
  bool take(const TensorSample& sample) { return is_real(sample.dtype) && take(sample, widen); }
  /// The same of their magnitudes; false also for types that have none.
  bool take_magnitudes(const TensorSample& sample) {
    return has_magnitude(sample.dtype) && take(sample, magnitudes);
  }
  [[nodiscard]] static bool all_of(const TensorSample& sample) { return sample.count <= kMost; }

  /// Linear between neighbours: at position (n − 1)·q of the sorted elements. NaN when one is NaN.
  double quantile(double q) {
    if (bad_ || values_.empty()) return std::numeric_limits<double>::quiet_NaN();
    const double position = static_cast<double>(values_.size() - 1) * q;
    const auto below = static_cast<std::size_t>(position);
    const double part = position - static_cast<double>(below);
    const auto at = values_.begin() + static_cast<std::ptrdiff_t>(below);
    std::nth_element(values_.begin(), at, values_.end());
    const double low = *at;
    if (part == 0) return low;
    const double high = *std::min_element(at + 1, values_.end());
    return low == high ? low : low * (1 - part) + high * part;
  }

 private:
  // Writes elements of a type at an address as numbers.
  using Read = void (*)(core::Dtype, const std::byte*, std::size_t, double*);

  bool take(const TensorSample& sample, Read read) {
    values_.clear();
    if (sample.count == 0) return false;
    bad_ = sample.row.nan > 0;
    if (bad_) return true;
    const DefaultFloatEnvironment environment;
    if (all_of(sample)) {
      values_.resize(sample.count);
      read(sample.dtype, static_cast<const std::byte*>(sample.data), sample.count, values_.data());
    } else {
      take_some(sample, read);
    }
    return true;
  }

  // From each part the element at a place of its own, so that no period of the data is met; the
  // same places every time.
  void take_some(const TensorSample& sample, Read read) {
    const std::size_t width = core::size_of(sample.dtype);
    const auto* from = static_cast<const std::byte*>(sample.data);
    values_.resize(kMost);
    std::uint64_t random = 0x9E3779B97F4A7C15;
    for (std::uint64_t i = 0; i < kMost; ++i) {
      const std::uint64_t first = sample.count / kMost * i + sample.count % kMost * i / kMost;
      random ^= random << 13U;  // xorshift64 (Marsaglia, 2003)
      random ^= random >> 7U;
      random ^= random << 17U;
      const std::uint64_t at = first + random % (sample.count / kMost);
      read(sample.dtype, from + at * width, 1, &values_[i]);
    }
  }

  std::vector<double> values_;
  bool bad_ = false;
};

}  // namespace tocsin::collectors
