// Reading recorded telemetry from its beginning to its end.
#pragma once

#include <cstdint>

#include "core/function_ref.h"
#include "core/record_source.h"
#include "core/result.h"
#include "ingest/ingest.h"

namespace tocsin::app {

struct RecordingEnd {
  std::uint64_t gaps = 0;  // places where records are missing
};

/// Hands every record of topic telemetry to `handle`, in order, as nobody: no group, no position,
/// no lease. `between` is called now and then, between two records.
core::Result<RecordingEnd> read_recording(ingest::Transport& transport, core::RecordHandler handle,
                                          core::FunctionRef<void()> between);

}  // namespace tocsin::app
