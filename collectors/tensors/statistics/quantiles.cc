// Four quantiles: how wide the bulk of the elements lies.
#include "collectors/tensors/statistics/ranks.h"

namespace tocsin::collectors {
namespace {

class Quantiles final : public TensorStatistic {
 public:
  void measure(const TensorSample& sample, StatisticSink& out) override {
    if (!elements_.take(sample)) return;
    if (!RankedElements::all_of(sample)) out.approximate();
    out.number(core::SparseStat::p05, elements_.quantile(0.05));
    out.number(core::SparseStat::p25, elements_.quantile(0.25));
    out.number(core::SparseStat::p75, elements_.quantile(0.75));
    out.number(core::SparseStat::p95, elements_.quantile(0.95));
  }

 private:
  RankedElements elements_;
};

}  // namespace

StatisticDescriptor quantiles() {
  return {.request = "quantiles",
          .gives = {"p05", "p25", "p75", "p95"},
          .make = [](const StatisticLimits&, std::span<const double>)
              -> std::unique_ptr<TensorStatistic> { return std::make_unique<Quantiles>(); }};
}

}  // namespace tocsin::collectors
