// Copies of the previous captured values, for `delta`: how far a weight moved between two captures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <vector>

namespace tocsin::app::client {

/// Costs as much memory as the tensors it holds, at most `limit` bytes. Not thread-safe.
class DeltaStore {
 public:
  struct Previous {
    std::vector<std::byte> bytes;
    std::int64_t step = -1;  // -1: nothing stored yet
  };

  explicit DeltaStore(std::uint64_t limit) : limit_(limit) {}

  /// The slot of a tensor, or null when it has none.
  Previous* find(std::uint64_t id) {
    const auto at = slots_.find(id);
    return at == slots_.end() ? nullptr : &at->second;
  }
  /// Makes a slot; false when the limit leaves no room.
  bool admit(std::uint64_t id, std::size_t bytes) {
    if (used_ + bytes > limit_) return false;
    used_ += bytes;
    slots_[id].bytes.resize(bytes);
    return true;
  }
  /// Stores the present value; a tensor that changed its size starts again.
  void store(Previous& slot, const void* data, std::size_t bytes, std::int64_t step) {
    if (slot.bytes.size() != bytes) {
      used_ += bytes - slot.bytes.size();
      slot.bytes.resize(bytes);
    }
    std::memcpy(slot.bytes.data(), data, bytes);
    slot.step = step;
  }
  [[nodiscard]] std::uint64_t used() const noexcept { return used_; }

 private:
  std::unordered_map<std::uint64_t, Previous> slots_;
  std::uint64_t limit_;
  std::uint64_t used_ = 0;
};

}  // namespace tocsin::app::client
