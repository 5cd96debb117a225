// How far a tensor moved between two captures, for as many tensors as memory allows: the value
// captured last is kept, and costs as much memory as the tensor.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "collectors/reduce.h"
#include "collectors/statistics/statistic.h"

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
  explicit Delta(std::uint64_t memory) : memory_(memory) {}

  void measure(const TensorSample& sample, StatisticSink& out) override {
    const auto found = previous_.find(sample.id);
    if (found == previous_.end()) return;
    Previous& slot = found->second;
    const std::size_t bytes = sample.count * core::size_of(sample.dtype);
    if (slot.step < 0 || slot.bytes.size() != bytes) return store(slot, sample, bytes);
    const DeltaNorms norms = delta_and_store(sample, slot.bytes);
    out.number(core::SparseStat::delta_l2, norms.delta_l2);
    out.number(core::SparseStat::delta_max_abs, norms.delta_max_abs);
    out.number(core::SparseStat::prev_l2, norms.prev_l2);
    out.number(core::SparseStat::delta_from_step, static_cast<double>(slot.step));
    slot.step = sample.step;
  }

  [[nodiscard]] bool is_new(std::uint64_t id) const override {
    return previous_.count(id) == 0 && refused_.count(id) == 0;
  }
  // Smallest tensors first, so that the largest are the ones left out when memory ends.
  void admit(std::vector<Wish> wishes) override {
    std::sort(wishes.begin(), wishes.end(),
              [](const Wish& a, const Wish& b) { return a.bytes < b.bytes; });
    for (const Wish& wish : wishes) {
      if (wish.bytes == 0 || !is_new(wish.id)) continue;
      if (used_ + wish.bytes > memory_) {
        refused_.insert(wish.id);
        left_out_.emplace_back(wish.name);
        continue;
      }
      used_ += wish.bytes;
      previous_[wish.id].bytes.resize(wish.bytes);
    }
  }
  [[nodiscard]] std::uint64_t kept_bytes() const override { return used_; }
  [[nodiscard]] std::span<const std::string> left_out() const override { return left_out_; }

 private:
  struct Previous {
    std::vector<std::byte> bytes;
    std::int64_t step = -1;  // -1: nothing stored yet
  };

  // A tensor that changed its size starts again.
  void store(Previous& slot, const TensorSample& sample, std::size_t bytes) {
    if (slot.bytes.size() != bytes) {
      used_ += bytes - slot.bytes.size();
      slot.bytes.resize(bytes);
    }
    std::memcpy(slot.bytes.data(), sample.data, bytes);
    slot.step = sample.step;
  }

  std::unordered_map<std::uint64_t, Previous> previous_;
  std::unordered_set<std::uint64_t> refused_;
  std::vector<std::string> left_out_;
  std::uint64_t memory_;
  std::uint64_t used_ = 0;
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
