// The destination of raw tensors as the settings have it, and a reader of what lies there.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "collectors/hook/client/settings.h"
#include "collectors/hook/raw/raw_sender.h"

namespace tocsin::hook {

/// Opens nothing yet. Null for a dry run: nothing is copied then.
OpenRawPlace raw_endpoint(const Settings& settings, const Identity& identity,
                          std::uint64_t incarnation);

/// The records of `tensors` in which those of this run are; reading leaves everything as it is.
struct TensorSource {
  std::unique_ptr<core::Log> log;
  std::unique_ptr<core::Telemetry> telemetry;
  std::unique_ptr<ingest::Transport> transport;
  std::unique_ptr<core::RecordSource> source;
};
/// Errors: unavailable (nothing answers, there is no journal), not_found (no such topic).
core::Result<TensorSource> tensor_source(const Settings& settings, const core::RunUid& run);

}  // namespace tocsin::hook
