#include "collectors/hook/capture/tensor_math.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "collectors/collectors.h"

namespace tocsin::hook {

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

bool gather(const void* data, std::size_t width, std::span<const std::int64_t> shape,
            std::span<const std::int64_t> strides, std::vector<std::byte>& out) {
  const std::uint64_t count = elements(shape);
  if (strides.size() != shape.size() || shape.empty() || width == 0 ||
      count > kMostGathered / width) {
    return false;
  }
  out.resize(count * width);
  std::vector<std::int64_t> index(shape.size(), 0);
  const auto* row = static_cast<const std::byte*>(data);
  const std::int64_t extent = shape.back();
  const std::int64_t stride = strides.back() * static_cast<std::int64_t>(width);
  for (std::byte* to = out.data(); to != out.data() + out.size();) {
    const std::byte* from = row;
    for (std::int64_t i = 0; i < extent; ++i, from += stride, to += width) {
      std::memcpy(to, from, width);
    }
    for (std::size_t axis = shape.size() - 1; axis-- > 0;) {  // as an odometer turns
      const std::int64_t step = strides[axis] * static_cast<std::int64_t>(width);
      row += step;
      if (++index[axis] < shape[axis]) break;
      row -= step * shape[axis];
      index[axis] = 0;
    }
  }
  return true;
}

}  // namespace tocsin::hook
