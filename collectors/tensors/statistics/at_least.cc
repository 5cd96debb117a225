// How many elements have reached a magnitude: saturated weights, inputs of tanh and sigmoid.
#include <cmath>

#include "collectors/tensors/elements.h"
#include "collectors/tensors/statistics/statistic.h"

namespace tocsin::collectors {
namespace {

class AtLeast final : public TensorStatistic {
 public:
  explicit AtLeast(double bound) : bound_(bound) {}

  // Infinities count, NaN does not.
  void measure(const TensorSample& sample, StatisticSink& out) override {
    std::uint64_t reached = 0;
    const auto count = [&](std::span<const double> block) {
      for (const double x : block) reached += std::fabs(x) >= bound_ ? 1 : 0;
    };
    if (!each_block(sample.dtype, sample.data, sample.count, count)) return;
    out.number(core::SparseStat::abs_ge_count, static_cast<double>(reached), {&bound_, 1});
  }

 private:
  double bound_;
};

}  // namespace

StatisticDescriptor at_least() {
  return {.request = "at_least",
          .gives = {"abs_ge_count"},
          .make = [](const StatisticLimits&,
                     std::span<const double> parameters) -> std::unique_ptr<TensorStatistic> {
            if (!(parameters[0] >= 0)) return nullptr;
            return std::make_unique<AtLeast>(parameters[0]);
          }};
}

}  // namespace tocsin::collectors
