// A full check of curves.db.
#pragma once

#include <string>

#include "core/result.h"
#include "insights/store/store_check.h"

namespace tocsin::insights {

/// Pages, that every chunk, piece, block and histogram decodes, that families have the rows that they
/// count, in order of x, and that the pyramid is exactly what its chunks give. Errors as those of
/// check_events.
core::Result<StoreFindings> check_series(const std::string& path);

}  // namespace tocsin::insights
