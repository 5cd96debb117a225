// Where a consumer group stands, asked without being a member. Not a door.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/record.h"
#include "core/result.h"
#include "ingest/transport.h"

namespace tocsin::ingest {

/// Committed positions of the group; partitions without one are left out.
core::Result<std::vector<core::Position>> kafka_positions(
    const TransportConfig& cfg, const TopicsConfig& topics, const std::string& group,
    std::span<const core::StreamPartition> asked);

}  // namespace tocsin::ingest
