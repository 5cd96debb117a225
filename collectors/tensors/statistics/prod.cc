// The product of all elements, which overflows and vanishes as such products do.
#include "collectors/tensors/elements.h"
#include "collectors/tensors/statistics/statistic.h"

namespace tocsin::collectors {
namespace {

class Prod final : public TensorStatistic {
 public:
  void measure(const TensorSample& sample, StatisticSink& out) override {
    double product = 1;
    const auto multiply = [&](std::span<const double> block) {
      for (const double x : block) product *= x;
    };
    if (!each_block(sample.dtype, sample.data, sample.count, multiply)) return;
    out.number(core::SparseStat::prod, product);
  }
};

}  // namespace

StatisticDescriptor prod() {
  return {.request = "prod",
          .gives = {"prod"},
          .make = [](const StatisticLimits&, std::span<const double>)
              -> std::unique_ptr<TensorStatistic> { return std::make_unique<Prod>(); }};
}

}  // namespace tocsin::collectors
