// Units of a layer that are hardly ever positive: what a ReLU has silenced.
#include "collectors/tensors/statistics/units.h"

namespace tocsin::collectors {
namespace {

class Units final : public TensorStatistic {
 public:
  explicit Units(double percent) : percent_(percent) {}

  void measure(const TensorSample& sample, StatisticSink& out) override {
    const auto layout = layout_of_units(sample);
    if (!layout) return;
    const auto silent = count_inactive(sample, *layout, percent_, [](double x) { return x > 0; });
    if (!silent) return;
    out.number(core::SparseStat::unit_count, static_cast<double>(layout->units));
    out.number(core::SparseStat::unit_inactive_count, static_cast<double>(*silent), {&percent_, 1});
  }

 private:
  double percent_;
};

}  // namespace

StatisticDescriptor units() {
  return {.request = "units",
          .gives = {"unit_count", "unit_inactive_count"},
          .in_order = true,
          .make = [](const StatisticLimits&,
                     std::span<const double> parameters) -> std::unique_ptr<TensorStatistic> {
            if (!(parameters[0] >= 0 && parameters[0] <= 100)) return nullptr;
            return std::make_unique<Units>(parameters[0]);
          }};
}

}  // namespace tocsin::collectors
