// How the elements of a lent tensor lie in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tocsin::hook {

/// Product of the extents; 0 when one is not positive.
std::uint64_t elements(std::span<const std::int64_t> shape);

/// Dense: the elements fill one block of memory in some order of the dimensions, so that
/// statistics may run over the block. Contiguous: in row-major order.
enum class Layout { contiguous, dense, strided };
/// `strides` in elements; empty: contiguous.
Layout layout_of(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides);

/// The elements of a view one after the other in row-major order: `out` is made as large as they are.
/// `width`: bytes of an element. False, and nothing is read: strides that do not fit the shape, or
/// more than kMostGathered bytes.
bool gather(const void* data, std::size_t width, std::span<const std::int64_t> shape,
            std::span<const std::int64_t> strides, std::vector<std::byte>& out);
inline constexpr std::size_t kMostGathered = std::size_t{64} << 20;

}  // namespace tocsin::hook
