// Where topics are read from to see what came since a time.
#pragma once

#include <string>
#include <vector>

#include "core/record.h"
#include "core/result.h"
#include "core/time.h"
#include "ingest/transport.h"

namespace tocsin::ingest {

/// Of each partition of these topics (short names) the first record whose timestamp is `since` or later; its end
/// if there is none. A topic that is not there yet is left out. Where a writer's clock has stepped back the first
/// may be any of the records between. Joins no group, commits nothing. Errors: as Transport::open(); unavailable:
/// nobody answers.
core::Result<std::vector<core::Position>> positions_since(const TransportConfig& cfg,
                                                          const TopicsConfig& topics,
                                                          const std::vector<std::string>& names,
                                                          core::WallTime since);

}  // namespace tocsin::ingest
