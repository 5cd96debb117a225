// A partition's state at a set of input positions is the last cut, plus the frames from the cut's
// positions on, plus the entries logged since (restore.h reads it back).
#pragma once

#include <cstddef>

#include "rules/engine/partition/context.h"

namespace tocsin::rules {

/// Engine::snapshot of a partition that is not silent.
bool write_snapshot(Context& ctx, PartitionState& state, std::size_t budget, Cut::Emit emit);

}  // namespace tocsin::rules
