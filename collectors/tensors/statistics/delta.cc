// How far a tensor moved between two captures.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "collectors/tensors/reduce.h"
#include "collectors/tensors/statistics/kept_values.h"
#include "collectors/tensors/statistics/statistic.h"

namespace tocsin::collectors {
namespace {

// Norms of the difference to the stored value, which becomes the present one. Block by block, so
// that what the norms have read is still in the nearest cache when it is copied.
DeltaNorms delta_and_store(const TensorSample& sample, std::vector<std::byte>& previous) {
  constexpr std::uint64_t kBlock = 2 * 1024;  // elements: 8 KiB of f32, twice
  const std::size_t width = core::size_of(sample.dtype);
  const auto* from = static_cast<const std::byte*>(sample.data);
  double moved = 0;
  double before = 0;
  double furthest = 0;
  for (std::uint64_t first = 0; first < sample.count; first += kBlock) {
    const std::uint64_t n = std::min(kBlock, sample.count - first);
    std::byte* stored = previous.data() + first * width;
    const DeltaNorms norms = delta(sample.dtype, from + first * width, stored, n);
    moved += norms.delta_l2 * norms.delta_l2;
    before += norms.prev_l2 * norms.prev_l2;
    if (!(norms.delta_max_abs <= furthest) && !std::isnan(furthest)) furthest = norms.delta_max_abs;
    std::memcpy(stored, from + first * width, n * width);
  }
  return {std::sqrt(moved), std::sqrt(before), furthest};
}

class Delta final : public TensorStatistic {
 public:
  explicit Delta(std::uint64_t memory) : kept_(memory) {}

  void measure(const TensorSample& sample, StatisticSink& out) override {
    KeptValue* const slot = kept_.of(sample);
    if (slot == nullptr) return;
    const DeltaNorms norms = delta_and_store(sample, slot->bytes);
    out.number(core::SparseStat::delta_l2, norms.delta_l2);
    out.number(core::SparseStat::delta_max_abs, norms.delta_max_abs);
    out.number(core::SparseStat::prev_l2, norms.prev_l2);
    out.number(core::SparseStat::delta_from_step, static_cast<double>(slot->step));
    slot->step = sample.step;
  }

  [[nodiscard]] bool is_new(std::uint64_t id) const override { return kept_.is_new(id); }
  void admit(std::vector<Wish> wishes) override { kept_.admit(std::move(wishes)); }
  [[nodiscard]] std::uint64_t kept_bytes() const override { return kept_.bytes(); }
  [[nodiscard]] std::span<const std::string> left_out() const override { return kept_.left_out(); }

 private:
  KeptValues kept_;
};

}  // namespace

StatisticDescriptor delta() {
  return {.request = "delta",
          .gives = {"delta_l2", "delta_max_abs", "prev_l2", "delta_from_step"},
          .make = [](const StatisticLimits& limits,
                     std::span<const double>) -> std::unique_ptr<TensorStatistic> {
            return std::make_unique<Delta>(limits.memory);
          }};
}

}  // namespace tocsin::collectors
