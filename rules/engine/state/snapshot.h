// A partition's state at a set of input positions is the last cut, plus the frames from the cut's
// positions on, plus the entries logged since (restore.h reads it back).
#pragma once

#include <cstddef>

#include "rules/engine/partition/partition.h"

namespace tocsin::rules {

/// Engine::snapshot of a partition that is not silent.
bool write_snapshot(PartitionState& state, std::size_t budget, EngineStats& stats, Cut::Emit emit);

}  // namespace tocsin::rules
