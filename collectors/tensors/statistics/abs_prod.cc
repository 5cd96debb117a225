// The product of all magnitudes, which overflows and vanishes as such products do.
#include <limits>

#include "collectors/tensors/statistics/magnitudes.h"
#include "collectors/tensors/statistics/statistic.h"

namespace tocsin::collectors {
namespace {

class AbsProd final : public TensorStatistic {
 public:
  void measure(const TensorSample& sample, StatisticSink& out) override {
    double product = 1;
    const auto multiply = [&](std::span<const double> block) {
      for (const double x : block) product *= x;
    };
    if (!has_magnitude(sample.dtype)) return;
    if (sample.row.nan > 0) {  // the modulus of (Inf, NaN) would be Inf
      product = std::numeric_limits<double>::quiet_NaN();
    } else {
      each_block_of_magnitudes(sample.dtype, sample.data, sample.count, multiply);
    }
    out.number(core::SparseStat::abs_prod, product);
  }
};

}  // namespace

StatisticDescriptor abs_prod() {
  return {.request = "abs_prod",
          .gives = {"abs_prod"},
          .make = [](const StatisticLimits&, std::span<const double>)
              -> std::unique_ptr<TensorStatistic> { return std::make_unique<AbsProd>(); }};
}

}  // namespace tocsin::collectors
