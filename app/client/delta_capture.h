// `delta`: how far a tensor moved between two captures, for as many tensors as memory allows.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "app/client/delta_store.h"
#include "core/codes.h"

namespace tocsin::app::client {

/// A tensor that wants `delta` and has no place yet. `text` outlives the call.
struct DeltaWish {
  std::uint64_t id = 0;
  std::size_t bytes = 0;
  std::string_view text;
};

/// Not thread-safe.
class DeltaCapture {
 public:
  explicit DeltaCapture(std::uint64_t memory) : previous_(memory) {}

  /// True when admit() should be asked: neither admitted nor refused before.
  [[nodiscard]] bool is_new(std::uint64_t id) {
    return previous_.find(id) == nullptr && refused_.count(id) == 0;
  }
  /// Smallest tensors first, so that the largest are the ones left out when memory ends.
  void admit(std::vector<DeltaWish> wishes);
  /// delta_l2, prev_l2 and delta_from_step against the value captured last, which becomes the
  /// present one. nullopt: not admitted, or nothing to compare with yet.
  std::optional<std::array<double, 3>> update(std::uint64_t id, core::Dtype dtype, const void* data,
                                              std::uint64_t count, std::int64_t step);
  [[nodiscard]] const std::vector<std::string>& left_out() const noexcept { return left_out_; }
  [[nodiscard]] std::uint64_t used_bytes() const noexcept { return previous_.used(); }

 private:
  DeltaStore previous_;
  std::unordered_set<std::uint64_t> refused_;
  std::vector<std::string> left_out_;
};

}  // namespace tocsin::app::client
