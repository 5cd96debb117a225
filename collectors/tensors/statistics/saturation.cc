// Units of a layer whose inputs are hardly ever where its function has a slope.
#include <array>

#include "collectors/tensors/statistics/units.h"

namespace tocsin::collectors {
namespace {

class Saturation final : public TensorStatistic {
 public:
  explicit Saturation(std::array<double, 3> parameters) : parameters_(parameters) {}

  // The bounds themselves count as saturated.
  void measure(const TensorSample& sample, StatisticSink& out) override {
    const auto layout = layout_of_units(sample);
    if (!layout) return;
    const auto [low, high, percent] = parameters_;
    const auto flat = count_inactive(sample, *layout, percent, [low = low, high = high](double x) {
      return low < x && x < high;
    });
    if (!flat) return;
    // Of how many, for whoever does not ask for `units` as well.
    out.number(core::SparseStat::unit_count, static_cast<double>(layout->units));
    out.number(core::SparseStat::unit_saturated_count, static_cast<double>(*flat), parameters_);
  }

 private:
  std::array<double, 3> parameters_;  // lo, hi, θ
};

}  // namespace

StatisticDescriptor saturation() {
  return {.request = "saturation",
          .gives = {"unit_saturated_count"},
          .in_order = true,
          .make = [](const StatisticLimits&,
                     std::span<const double> parameters) -> std::unique_ptr<TensorStatistic> {
            const double percent = parameters[2];
            if (!(parameters[0] < parameters[1] && percent >= 0 && percent <= 100)) return nullptr;
            return std::make_unique<Saturation>(
                std::array{parameters[0], parameters[1], parameters[2]});
          }};
}

}  // namespace tocsin::collectors
