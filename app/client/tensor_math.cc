#include "app/client/tensor_math.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace tocsin::app::client {

using collectors::DeltaNorms;
using core::Dtype;

namespace {

template <typename Bits>
std::int64_t first_with_exponent(const void* data, std::uint64_t count, Bits mask) {
  const auto* bytes = static_cast<const std::byte*>(data);
  for (std::uint64_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, bytes + i * sizeof bits, sizeof bits);
    if ((bits & mask) == mask) return static_cast<std::int64_t>(i);
  }
  return -1;
}

}  // namespace

std::uint64_t elements(std::span<const std::int64_t> shape) {
  std::uint64_t count = 1;
  for (const std::int64_t extent : shape)
    count *= static_cast<std::uint64_t>(std::max<std::int64_t>(extent, 0));
  return count;
}

Layout layout_of(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides) {
  if (strides.empty()) return Layout::contiguous;
  if (strides.size() != shape.size() || shape.size() > collectors::kMaxDims) return Layout::strided;
  std::int64_t expected = 1;
  bool row_major = true;
  for (std::size_t i = shape.size(); i-- > 0;) {
    row_major = row_major && (shape[i] <= 1 || strides[i] == expected);
    expected *= shape[i];
  }
  if (row_major) return Layout::contiguous;
  std::array<std::size_t, collectors::kMaxDims> order{};
  for (std::size_t i = 0; i < shape.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(shape.size()),
            [&](std::size_t a, std::size_t b) { return strides[a] < strides[b]; });
  expected = 1;
  for (std::size_t k = 0; k < shape.size(); ++k) {
    const std::size_t i = order[k];
    if (shape[i] <= 1) continue;
    if (strides[i] != expected) return Layout::strided;
    expected *= shape[i];
  }
  return Layout::dense;
}

std::int64_t first_bad_index(Dtype dtype, const void* data, std::uint64_t count) {
  switch (dtype) {
    case Dtype::f32:
      return first_with_exponent<std::uint32_t>(data, count, 0x7f800000U);
    case Dtype::f64:
      return first_with_exponent<std::uint64_t>(data, count, 0x7ff0000000000000ULL);
    case Dtype::f16:
      return first_with_exponent<std::uint16_t>(data, count, std::uint16_t{0x7c00});
    case Dtype::bf16:
      return first_with_exponent<std::uint16_t>(data, count, std::uint16_t{0x7f80});
    default:
      return -1;
  }
}

DeltaNorms delta_and_store(Dtype dtype, const void* now, std::vector<std::byte>& previous,
                           std::uint64_t count) {
  constexpr std::uint64_t kBlock = 16 * 1024;  // elements: 64 KiB of f32, twice
  const std::size_t width = core::size_of(dtype);
  const auto* from = static_cast<const std::byte*>(now);
  double delta = 0;
  double before = 0;
  for (std::uint64_t first = 0; first < count; first += kBlock) {
    const std::uint64_t n = std::min(kBlock, count - first);
    std::byte* stored = previous.data() + first * width;
    const DeltaNorms norms = collectors::delta(dtype, from + first * width, stored, n);
    delta += norms.delta_l2 * norms.delta_l2;
    before += norms.prev_l2 * norms.prev_l2;
    std::memcpy(stored, from + first * width, n * width);
  }
  DeltaNorms out;
  out.delta_l2 = std::sqrt(delta);
  out.prev_l2 = std::sqrt(before);
  return out;
}

}  // namespace tocsin::app::client
