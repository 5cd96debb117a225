// How the elements of a lent tensor lie in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tocsin::app::client {

/// Product of the extents; 0 when one is not positive.
std::uint64_t elements(std::span<const std::int64_t> shape);

/// Dense: the elements fill one block of memory in some order of the dimensions, so that
/// statistics may run over the block. Contiguous: in row-major order.
enum class Layout { contiguous, dense, strided };
/// `strides` in elements; empty: contiguous.
Layout layout_of(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides);

}  // namespace tocsin::app::client
