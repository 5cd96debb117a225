// The middle of the sorted magnitudes; of two the mean.
#include "collectors/tensors/statistics/ranks.h"

namespace tocsin::collectors {
namespace {

class AbsMedian final : public TensorStatistic {
 public:
  void measure(const TensorSample& sample, StatisticSink& out) override {
    if (!magnitudes_.take_magnitudes(sample)) return;
    if (!RankedElements::all_of(sample)) out.approximate();
    out.number(core::SparseStat::abs_median, magnitudes_.quantile(0.5));
  }

 private:
  RankedElements magnitudes_;
};

}  // namespace

StatisticDescriptor abs_median() {
  return {.request = "abs_median",
          .gives = {"abs_median"},
          .make = [](const StatisticLimits&, std::span<const double>)
              -> std::unique_ptr<TensorStatistic> { return std::make_unique<AbsMedian>(); }};
}

}  // namespace tocsin::collectors
