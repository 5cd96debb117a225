// The smallest magnitude: 0 as soon as one element is.
#include <limits>

#include "collectors/tensors/statistics/magnitudes.h"
#include "collectors/tensors/statistics/statistic.h"

namespace tocsin::collectors {
namespace {

class AbsMin final : public TensorStatistic {
 public:
  // Nothing of an empty tensor, NaN where an element is one.
  void measure(const TensorSample& sample, StatisticSink& out) override {
    if (sample.count == 0 || !has_magnitude(sample.dtype)) return;
    double least = std::numeric_limits<double>::infinity();
    if (sample.row.nan > 0) {
      least = std::numeric_limits<double>::quiet_NaN();
    } else if (sample.row.zero > 0) {
      least = 0;
    } else {
      each_block_of_magnitudes(sample.dtype, sample.data, sample.count,
                               [&](std::span<const double> block) {
                                 for (const double x : block) least = std::min(least, x);
                               });
    }
    out.number(core::SparseStat::abs_min, least);
  }
};

}  // namespace

StatisticDescriptor abs_min() {
  return {.request = "abs_min",
          .gives = {"abs_min"},
          .make = [](const StatisticLimits&, std::span<const double>)
              -> std::unique_ptr<TensorStatistic> { return std::make_unique<AbsMin>(); }};
}

}  // namespace tocsin::collectors
