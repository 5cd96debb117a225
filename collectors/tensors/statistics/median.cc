// The middle of the sorted elements; of two the mean.
#include "collectors/tensors/statistics/ranks.h"

namespace tocsin::collectors {
namespace {

class Median final : public TensorStatistic {
 public:
  void measure(const TensorSample& sample, StatisticSink& out) override {
    if (!elements_.take(sample)) return;
    if (!RankedElements::all_of(sample)) out.approximate();
    out.number(core::SparseStat::median, elements_.quantile(0.5));
  }

 private:
  RankedElements elements_;
};

}  // namespace

StatisticDescriptor median() {
  return {.request = "median",
          .gives = {"median"},
          .make = [](const StatisticLimits&, std::span<const double>)
              -> std::unique_ptr<TensorStatistic> { return std::make_unique<Median>(); }};
}

}  // namespace tocsin::collectors
