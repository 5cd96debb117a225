// A tensor of the caller's.
#pragma once

#include <cstdint>
#include <span>

#include "core/codes.h"

namespace tocsin::hook {

/// A tensor lent for the length of one call.
struct LentTensor {
  std::uint64_t id = 0;
  const void* data = nullptr;
  std::span<const std::int64_t> shape;
  std::span<const std::int64_t> strides;  // in elements; empty: contiguous
  core::Dtype dtype = core::Dtype::unknown;
  std::uint64_t flags = 0;
  bool off_grid = false;  // captured although the step is not due
  bool raw = false;       // its elements, too, whatever its collections say
};

}  // namespace tocsin::hook
