// Sums per channel of a batch of images, over batch and space.
#include <cmath>
#include <vector>

#include "collectors/tensors/statistics/units.h"

namespace tocsin::collectors {
namespace {

constexpr std::uint64_t kMostChannels = 4096;  // more are pixels of another layout

class Channels final : public TensorStatistic {
 public:
  // Axis 0 is the batch. Three dimensions are one channel; of more, axis 1 holds the channels.
  // Elements that are not finite are left out.
  void measure(const TensorSample& sample, StatisticSink& out) override {
    const std::size_t rank = sample.shape.size();
    if (!sample.row_major || rank < 3 || sample.count == 0) return;
    const std::uint64_t channels = rank == 3 ? 1 : static_cast<std::uint64_t>(sample.shape[1]);
    if (channels > kMostChannels) return;
    UnitLayout layout{channels, 0, sample.count / channels};
    layout.inner = layout.samples / static_cast<std::uint64_t>(sample.shape[0]);
    for (auto* one : {&sum_, &squares_, &count_}) one->assign(channels, 0);
    const auto add = [&](std::uint64_t channel, std::span<const double> run) {
      double sum = 0;
      double squares = 0;
      std::uint64_t finite = 0;
      for (const double x : run) {
        const bool counts = std::isfinite(x);
        const double kept = counts ? x : 0;
        sum += kept;
        squares += kept * kept;
        finite += counts ? 1 : 0;
      }
      sum_[channel] += sum;
      squares_[channel] += squares;
      count_[channel] += static_cast<double>(finite);
    };
    if (!each_run(sample, layout, add)) return;
    out.vector(core::VectorStat::channel_sum, sum_, {});
    out.vector(core::VectorStat::channel_sumsq, squares_, {});
    out.vector(core::VectorStat::channel_count, count_, {});
  }

 private:
  std::vector<double> sum_;
  std::vector<double> squares_;
  std::vector<double> count_;
};

}  // namespace

StatisticDescriptor channels() {
  return {.request = "channels",
          .gives = {"channel_sum", "channel_sumsq", "channel_count"},
          .in_order = true,
          .make = [](const StatisticLimits&, std::span<const double>)
              -> std::unique_ptr<TensorStatistic> { return std::make_unique<Channels>(); }};
}

}  // namespace tocsin::collectors
