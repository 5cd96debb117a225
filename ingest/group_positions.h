// Where a consumer group stands, asked without being a member of it.
#pragma once

#include <string>
#include <vector>

#include "core/record.h"
#include "core/result.h"
#include "ingest/transport.h"

namespace tocsin::ingest {

/// Positions that the group has committed in these topics (short names); partitions without one are left
/// out. Joins no group, commits nothing. Errors: as Transport::open(); unavailable: nobody answers.
core::Result<std::vector<core::Position>> group_positions(const TransportConfig& cfg,
                                                          const TopicsConfig& topics,
                                                          const std::string& group,
                                                          const std::vector<std::string>& names);

}  // namespace tocsin::ingest
