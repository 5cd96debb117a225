// Magnitudes by powers of 2^(1/8), for each sign: OpenTelemetry's exponential histogram of scale 3.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "collectors/tensors/elements.h"
#include "collectors/tensors/statistics/statistic.h"

namespace tocsin::collectors {
namespace {

constexpr int kPerOctave = 8;
constexpr int kLowest = -1074 * kPerOctave - 1;  // of the smallest denormal: its upper end
constexpr int kBuckets = 1024 * kPerOctave - kLowest;

constexpr std::uint64_t kMantissa = (std::uint64_t{1} << 52) - 1;
constexpr std::size_t kSteps = kPerOctave - 1;

// The mantissas of 2^(k/8) for k = 1 … 7, as bits.
std::array<std::uint64_t, kSteps> steps_of_an_octave() {
  std::array<std::uint64_t, kSteps> out{};
  for (std::size_t k = 0; k < out.size(); ++k) {
    const double step = std::exp2(static_cast<double>(k + 1) / kPerOctave);
    out[k] = std::bit_cast<std::uint64_t>(step) & kMantissa;
  }
  return out;
}

// i with 2^(i/8) < x <= 2^((i+1)/8), of a finite x > 0.
int bucket_of(double x, const std::array<std::uint64_t, kSteps>& steps) {
  int exponent = 0;
  if (x < std::numeric_limits<double>::min()) {  // a denormal: made a normal number
    x *= 0x1p64;
    exponent = -64;
  }
  const auto bits = std::bit_cast<std::uint64_t>(x);
  exponent += static_cast<int>(bits >> 52U) - 1023;
  const std::uint64_t mantissa = bits & kMantissa;
  int above = mantissa == 0 ? -1 : 0;  // a power of two ends its bucket
  for (const std::uint64_t step : steps) above += mantissa > step ? 1 : 0;
  return exponent * kPerOctave + above;
}

class Histogram final : public TensorStatistic {
 public:
  // Zeros and what is not finite have columns of their own.
  void measure(const TensorSample& sample, StatisticSink& out) override {
    for (auto& counts : counts_) counts.assign(kBuckets, 0);
    static const auto kOctave = steps_of_an_octave();
    const auto add = [&](std::span<const double> block) {
      for (const double x : block) {
        if (x == 0 || !std::isfinite(x)) continue;
        ++counts_[x < 0 ? 1 : 0]
                 [static_cast<std::size_t>(bucket_of(std::fabs(x), kOctave) - kLowest)];
      }
    };
    if (!each_block(sample.dtype, sample.data, sample.count, add)) return;
    ExponentialHistogram histogram;
    histogram.positive_offset = trim(counts_[0], histogram.positive);
    histogram.negative_offset = trim(counts_[1], histogram.negative);
    out.histogram(histogram);
  }

 private:
  using Counts = std::vector<std::uint64_t>;

  // What lies between the first and the last that is not 0; the number of the first.
  static std::int32_t trim(const Counts& from, Counts& to) {
    const auto counted = [](std::uint64_t n) { return n != 0; };
    const auto first = std::find_if(from.begin(), from.end(), counted);
    if (first == from.end()) return 0;
    const auto last = std::find_if(from.rbegin(), from.rend(), counted).base();
    to.assign(first, last);
    return static_cast<std::int32_t>(first - from.begin()) + kLowest;
  }

  std::array<Counts, 2> counts_;  // positive, negative
};

}  // namespace

StatisticDescriptor histogram() {
  return {.request = "histogram",
          .gives = {"histogram"},
          .make = [](const StatisticLimits&, std::span<const double>)
              -> std::unique_ptr<TensorStatistic> { return std::make_unique<Histogram>(); }};
}

}  // namespace tocsin::collectors
