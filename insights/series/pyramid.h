// What one chunk of rows adds to the pyramid of its family.
#pragma once

#include <cstdint>

#include "core/function_ref.h"
#include "insights/series/column_codec.h"

namespace tocsin::insights {

/// The buckets of one column, level by level from `k0` up, each level in order. An upper bucket is merged
/// from those of this chunk alone: so sums are the same whenever a pyramid is made again.
void visit_rolled(
    const SeriesRows& chunk, std::size_t column, std::int64_t k0,
    core::FunctionRef<void(std::int64_t level, std::int64_t at, const Bucket&)> visit);

}  // namespace tocsin::insights
