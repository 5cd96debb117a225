#include "app/client/delta_capture.h"

#include <algorithm>

#include "app/client/tensor_math.h"

namespace tocsin::app::client {

void DeltaCapture::admit(std::vector<DeltaWish> wishes) {
  std::sort(wishes.begin(), wishes.end(),
            [](const DeltaWish& a, const DeltaWish& b) { return a.bytes < b.bytes; });
  for (const DeltaWish& wish : wishes) {
    if (wish.bytes == 0 || previous_.find(wish.id) != nullptr) continue;
    if (previous_.admit(wish.id, wish.bytes)) continue;
    refused_.insert(wish.id);
    left_out_.emplace_back(wish.text);
  }
}

std::optional<std::array<double, 3>> DeltaCapture::update(std::uint64_t id, core::Dtype dtype,
                                                          const void* data, std::uint64_t count,
                                                          std::int64_t step) {
  DeltaStore::Previous* slot = previous_.find(id);
  if (slot == nullptr) return std::nullopt;
  const std::size_t bytes = count * core::size_of(dtype);
  if (slot->step < 0 || slot->bytes.size() != bytes) {
    previous_.store(*slot, data, bytes, step);
    return std::nullopt;
  }
  const collectors::DeltaNorms norms = delta_and_store(dtype, data, slot->bytes, count);
  const std::array<double, 3> out{norms.delta_l2, norms.prev_l2, static_cast<double>(slot->step)};
  slot->step = step;
  return out;
}

}  // namespace tocsin::app::client
