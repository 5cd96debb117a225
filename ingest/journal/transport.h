// Transport on a journal folder.
#pragma once

#include <memory>
#include <string>

#include "ingest/transport.h"

namespace tocsin::ingest {

/// See Transport::open. `machine`: hash of this machine's id; tests pass another.
core::Result<std::unique_ptr<Transport>> open_journal(const TransportConfig& cfg,
                                                      const TopicsConfig& topics, core::Log& log,
                                                      core::Telemetry& telemetry,
                                                      const std::string& machine);

/// See Transport::open_recording.
core::Result<std::unique_ptr<Transport>> open_journal_recording(const std::string& directory,
                                                                const TopicsConfig& topics,
                                                                core::Log& log,
                                                                core::Telemetry& telemetry);

}  // namespace tocsin::ingest
