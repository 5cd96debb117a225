// What is kept of the values of one column within one width of x: exact, and mergeable.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>

namespace tocsin::insights {

// −0 is less than 0, so that the order in which buckets are merged does not matter.
inline double lesser(double a, double b) noexcept {
  return b < a || (b == a && std::signbit(b)) ? b : a;
}
inline double greater(double a, double b) noexcept {
  return b > a || (b == a && std::signbit(a)) ? b : a;
}

/// Of x in [b·2^k, (b+1)·2^k). It is stored as it is (column_codec.h).
struct Bucket {
  std::uint32_t n = 0;  // finite values; the next five are theirs
  std::uint32_t nan = 0;
  std::uint32_t posinf = 0;
  std::uint32_t neginf = 0;
  double min = 0;
  double max = 0;
  double first = 0;
  double last = 0;
  double sum = 0;
  std::int64_t bad_x = -1;  // the first x with a value that is not finite; -1: there is none

  [[nodiscard]] std::uint32_t bad() const noexcept { return nan + posinf + neginf; }
  [[nodiscard]] double mean() const noexcept { return sum / n; }
  [[nodiscard]] bool empty() const noexcept { return n + bad() == 0; }

  void add(std::int64_t x, double value) noexcept {
    Bucket one;
    if (std::isfinite(value)) {
      one.n = 1;
      one.min = one.max = one.first = one.last = one.sum = value;
    } else {
      one.nan = std::isnan(value) ? 1 : 0;
      one.posinf = value > 0 ? 1 : 0;
      one.neginf = value < 0 ? 1 : 0;
      one.bad_x = x;
    }
    append(one);
  }

  /// `later`: of values behind these.
  void append(const Bucket& later) noexcept {
    if (later.n > 0) {
      min = n == 0 ? later.min : lesser(min, later.min);
      max = n == 0 ? later.max : greater(max, later.max);
      if (n == 0) first = later.first;
      last = later.last;
      sum += later.sum;
    }
    n += later.n;
    nan += later.nan;
    posinf += later.posinf;
    neginf += later.neginf;
    if (bad_x < 0) bad_x = later.bad_x;
  }
};
static_assert(sizeof(Bucket) == 64);

/// By the number of the bucket; what is empty is left out.
using Buckets = std::map<std::int64_t, Bucket>;

inline constexpr std::int64_t kBlockBuckets = 64;  // one row of the pyramid
inline constexpr int kLevelStep = 4;               // a bucket holds 16 of the level below
inline constexpr int kLevels = 5;

}  // namespace tocsin::insights
