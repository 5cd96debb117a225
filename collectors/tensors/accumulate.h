// From a dtype and an address to the right kernel.
#pragma once

#include <cstddef>

#include "collectors/tensors/moments.h"
#include "core/codes.h"

namespace tocsin::collectors {

/// True for the types that have statistics: all but unknown and text.
bool reducible(core::Dtype dtype) noexcept;

/// Merges `count` contiguous elements at `data`, of any alignment. The caller holds a
/// DefaultFloatEnvironment.
void accumulate(core::Dtype dtype, const void* data, std::size_t count, Moments& out) noexcept;

/// The row of what was accumulated; settles what no dtype-blind merge can know (complex numbers).
core::SummaryRow finish(core::Dtype dtype, const Moments& moments) noexcept;

}  // namespace tocsin::collectors
