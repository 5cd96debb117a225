// The value of each tensor that was captured last, for as many tensors as memory allows: it costs as
// much memory as the tensor.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "collectors/tensors/statistics/statistic.h"

namespace tocsin::collectors {

struct KeptValue {
  std::vector<std::byte> bytes;
  std::int64_t step = -1;  // -1: nothing stored yet
};

/// What a statistic asks of TensorStatistic, for those that compare with the value before.
class KeptValues {
 public:
  explicit KeptValues(std::uint64_t memory) : memory_(memory) {}

  /// The value before, of the same size; else nullptr, and where there is room the present one is kept. Who
  /// gets one puts the present one in its place.
  KeptValue* of(const TensorSample& sample) {
    const auto found = values_.find(sample.id);
    if (found == values_.end()) return nullptr;
    KeptValue& kept = found->second;
    const std::size_t bytes = sample.count * core::size_of(sample.dtype);
    if (kept.step >= 0 && kept.bytes.size() == bytes) return &kept;
    if (kept.bytes.size() != bytes) {  // a tensor that changed its size starts again
      used_ += bytes - kept.bytes.size();
      kept.bytes.resize(bytes);
    }
    if (bytes != 0) std::memcpy(kept.bytes.data(), sample.data, bytes);
    kept.step = sample.step;
    return nullptr;
  }

  [[nodiscard]] bool is_new(std::uint64_t id) const {
    return values_.count(id) == 0 && refused_.count(id) == 0;
  }
  /// Smallest tensors first, so that the largest are the ones left out when memory ends.
  void admit(std::vector<Wish> wishes) {
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
      values_[wish.id].bytes.resize(wish.bytes);
    }
  }
  [[nodiscard]] std::uint64_t bytes() const { return used_; }
  [[nodiscard]] std::span<const std::string> left_out() const { return left_out_; }

 private:
  std::unordered_map<std::uint64_t, KeptValue> values_;
  std::unordered_set<std::uint64_t> refused_;
  std::vector<std::string> left_out_;
  std::uint64_t memory_;
  std::uint64_t used_ = 0;
};

}  // namespace tocsin::collectors
