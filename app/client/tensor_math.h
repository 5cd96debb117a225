// What the client computes on lent tensors beside the statistics of `collectors`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collectors/collectors.h"
#include "core/codes.h"

namespace tocsin::app::client {

/// Product of the extents; 0 when one is not positive.
std::uint64_t elements(std::span<const std::int64_t> shape);

/// Dense: the elements fill one block of memory in some order of the dimensions, so that
/// statistics may run over the block. Contiguous: in row-major order.
enum class Layout { contiguous, dense, strided };
/// `strides` in elements; empty: contiguous.
Layout layout_of(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides);

/// Index of the first NaN or infinity of contiguous elements; -1: none, or a type without them.
std::int64_t first_bad_index(core::Dtype dtype, const void* data, std::uint64_t count);

/// Norms of the difference to the stored value, which becomes the present one. Block by block, so
/// that what the norms have read is still in the cache when it is copied. `previous` holds `count`
/// elements.
collectors::DeltaNorms delta_and_store(core::Dtype dtype, const void* now,
                                       std::vector<std::byte>& previous, std::uint64_t count);

}  // namespace tocsin::app::client
