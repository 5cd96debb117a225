// Quantiles of any number of values in a fixed number of words: exact up to kExact values, from an
// exponential histogram (OpenTelemetry's mathematics) beyond. A bucket holds 2^(i/2^scale) < |x| ≤
// 2^((i+1)/2^scale); when the range of magnitudes outgrows the buckets, neighbours are joined and
// scale falls by one. At scale 3, where it begins, a quantile is off by at most 4.4 % of its value.
#pragma once

#include <cstdint>

namespace tocsin::rules::declared {

struct Histogram {
  static constexpr std::uint32_t kExact = 1024;
  static constexpr std::uint32_t kBuckets = 320;  // of each sign: 40 powers of two at scale 3
  static constexpr std::uint32_t kWords = 6 + kExact + kBuckets;

  static void begin(std::uint64_t* words);
  static void add(std::uint64_t* words, double x);
  /// NaN: no values.
  static double quantile(const std::uint64_t* words, double q);
};

}  // namespace tocsin::rules::declared
