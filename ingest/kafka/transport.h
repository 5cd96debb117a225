// Transport on a Kafka cluster.
#pragma once

#include <memory>

#include "ingest/transport.h"

namespace tocsin::ingest {

/// See Transport::open.
core::Result<std::unique_ptr<Transport>> open_kafka(const TransportConfig& cfg,
                                                    const TopicsConfig& topics, core::Log& log,
                                                    core::Telemetry& telemetry);

}  // namespace tocsin::ingest
