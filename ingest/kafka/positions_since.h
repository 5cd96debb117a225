// The first records since a time, by the brokers' indices. Not a door.
#pragma once

#include <span>
#include <vector>

#include "core/record.h"
#include "core/result.h"
#include "core/time.h"
#include "ingest/transport.h"

namespace tocsin::ingest {

/// One of each partition; its end where nothing is so young.
core::Result<std::vector<core::Position>> kafka_positions_since(
    const TransportConfig& cfg, const TopicsConfig& topics,
    std::span<const core::StreamPartition> asked, core::WallTime since);

}  // namespace tocsin::ingest
