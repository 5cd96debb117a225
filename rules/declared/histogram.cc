#include "rules/declared/histogram.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace tocsin::rules::declared {
namespace {

// Words: values seen, zeros, scale, first bucket of each sign (+ one that says there is any), the
// first kExact values, then the buckets: counts of 32 bits, negative ones in the upper half.
enum Word : std::uint32_t { kCount, kZeros, kScale, kPositive, kNegative, kUsed, kValues };
constexpr std::uint32_t kCounts = kValues + Histogram::kExact;
constexpr std::int64_t kFirstScale = 3;

std::int64_t index_of(double magnitude, std::int64_t scale) {
  const double log = std::log2(magnitude) * std::exp2(static_cast<double>(scale));
  return static_cast<std::int64_t>(std::ceil(log)) - 1;
}

/// The buckets of one sign.
struct Side {
  std::uint64_t* words;
  bool negative;

  [[nodiscard]] std::int64_t first() const {
    return static_cast<std::int64_t>(words[negative ? kNegative : kPositive]);
  }
  void first(std::int64_t index) const {
    words[negative ? kNegative : kPositive] = static_cast<std::uint64_t>(index);
  }
  [[nodiscard]] bool used() const { return (words[kUsed] & (negative ? 2U : 1U)) != 0; }
  [[nodiscard]] std::uint32_t get(std::uint32_t i) const {
    return static_cast<std::uint32_t>(words[kCounts + i] >> (negative ? 32U : 0U));
  }
  void set(std::uint32_t i, std::uint32_t count) const {
    std::uint64_t& both = words[kCounts + i];
    const std::uint64_t mask = negative ? 0xFFFFFFFFU : 0xFFFFFFFF00000000U;
    both = (both & mask) | (static_cast<std::uint64_t>(count) << (negative ? 32U : 0U));
  }

  // Joins neighbours in pairs: bucket i of this scale is bucket floor(i/2) of the next.
  void halve() const {
    if (!used()) return;
    const std::int64_t before = first();
    const std::int64_t after = before >> 1;
    std::array<std::uint32_t, Histogram::kBuckets> counts{};
    for (std::uint32_t i = 0; i < Histogram::kBuckets; ++i) {
      const auto at = static_cast<std::size_t>(((before + i) >> 1) - after);
      if (get(i) > 0) counts[at] += get(i);
    }
    for (std::uint32_t i = 0; i < Histogram::kBuckets; ++i) set(i, counts[i]);
    first(after);
  }

  /// Makes room for a bucket; false: the scale must fall first.
  [[nodiscard]] bool reach(std::int64_t index) const {
    if (!used()) {
      first(index - Histogram::kBuckets / 2);
      words[kUsed] |= negative ? 2U : 1U;
      return true;
    }
    std::int64_t low = index;
    std::int64_t high = index;
    for (std::uint32_t i = 0; i < Histogram::kBuckets; ++i) {
      if (get(i) == 0) continue;
      low = std::min(low, first() + i);
      high = std::max(high, first() + i);
    }
    if (high - low >= Histogram::kBuckets) return false;
    if (index >= first() && index < first() + Histogram::kBuckets) return true;
    const std::int64_t moved = low - (Histogram::kBuckets - (high - low + 1)) / 2;
    std::array<std::uint32_t, Histogram::kBuckets> counts{};
    for (std::uint32_t i = 0; i < Histogram::kBuckets; ++i) {
      if (get(i) > 0) counts[static_cast<std::size_t>(first() + i - moved)] = get(i);
    }
    for (std::uint32_t i = 0; i < Histogram::kBuckets; ++i) set(i, counts[i]);
    first(moved);
    return true;
  }
};

void count(std::uint64_t* words, double x) {
  if (x == 0) {
    ++words[kZeros];
    return;
  }
  const Side side{words, x < 0};
  const Side other{words, x >= 0};
  auto scale = static_cast<std::int64_t>(words[kScale]);
  while (!side.reach(index_of(std::fabs(x), scale))) {
    side.halve();
    other.halve();
    words[kScale] = static_cast<std::uint64_t>(--scale);
  }
  const auto at = static_cast<std::uint32_t>(index_of(std::fabs(x), scale) - side.first());
  const std::uint32_t before = side.get(at);
  if (before != 0xFFFFFFFFU) side.set(at, before + 1);
}

double middle_of(std::int64_t index, std::int64_t scale) {
  return std::exp2((static_cast<double>(index) + 0.5) / std::exp2(static_cast<double>(scale)));
}

}  // namespace

void Histogram::begin(std::uint64_t* words) {
  std::memset(words, 0, kWords * sizeof(std::uint64_t));
  words[kScale] = static_cast<std::uint64_t>(kFirstScale);
}

void Histogram::add(std::uint64_t* words, double x) {
  if (words[kCount] < kExact) words[kValues + words[kCount]] = std::bit_cast<std::uint64_t>(x);
  ++words[kCount];
  count(words, x);
}

double Histogram::quantile(const std::uint64_t* words, double q) {
  const std::uint64_t n = words[kCount];
  if (n == 0) return std::nan("");
  if (n <= kExact) {
    std::array<double, kExact> values{};
    for (std::uint64_t i = 0; i < n; ++i) values[i] = std::bit_cast<double>(words[kValues + i]);
    std::sort(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(n));
    const double place = q * static_cast<double>(n - 1);
    const auto below = static_cast<std::size_t>(place);
    if (below + 1 >= n) return values[below];
    return values[below] +
           (place - static_cast<double>(below)) * (values[below + 1] - values[below]);
  }
  const auto scale = static_cast<std::int64_t>(words[kScale]);
  const double wanted = q * static_cast<double>(n - 1);
  double passed = 0;
  auto* bare = const_cast<std::uint64_t*>(words);  // only read through the sides
  const Side negative{bare, true};
  for (std::uint32_t i = kBuckets; i-- > 0;) {
    passed += negative.get(i);
    if (passed > wanted) return -middle_of(negative.first() + i, scale);
  }
  passed += static_cast<double>(words[kZeros]);
  if (passed > wanted) return 0;
  const Side positive{bare, false};
  for (std::uint32_t i = 0; i < kBuckets; ++i) {
    passed += positive.get(i);
    if (passed > wanted) return middle_of(positive.first() + i, scale);
  }
  return std::nan("");
}

}  // namespace tocsin::rules::declared
