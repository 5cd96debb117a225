// How often each of some values occurs: padding among tokens.
#include <algorithm>
#include <cmath>
#include <vector>

#include "collectors/tensors/elements.h"
#include "collectors/tensors/statistics/statistic.h"

namespace tocsin::collectors {
namespace {

constexpr double kSame = 1e-6;  // tokens that are stored as floats

class Values final : public TensorStatistic {
 public:
  explicit Values(std::span<const double> values) : values_(values.begin(), values.end()) {}

  void measure(const TensorSample& sample, StatisticSink& out) override {
    std::vector<std::uint64_t> counts(values_.size());
    const auto count = [&](std::span<const double> block) {
      for (std::size_t k = 0; k < values_.size(); ++k) {
        const double value = values_[k];
        std::uint64_t same = 0;
        for (const double x : block) same += std::fabs(x - value) <= kSame ? 1 : 0;
        counts[k] += same;
      }
    };
    if (!each_block(sample.dtype, sample.data, sample.count, count)) return;
    const std::vector<double> numbers(counts.begin(), counts.end());
    out.vector(core::VectorStat::value_counts, numbers, values_);
  }

 private:
  std::vector<double> values_;
};

}  // namespace

StatisticDescriptor values() {
  return {.request = "values",
          .gives = {"value_counts"},
          .make = [](const StatisticLimits&,
                     std::span<const double> parameters) -> std::unique_ptr<TensorStatistic> {
            const auto finite = [](double value) { return std::isfinite(value); };
            if (!std::all_of(parameters.begin(), parameters.end(), finite)) return nullptr;
            return std::make_unique<Values>(parameters);
          }};
}

}  // namespace tocsin::collectors
