// The bytes of a trace that a run has sent as a raw tensor: where they lie, and they themselves
// while they are read from the topic.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "app/api/trace_rows.h"
#include "app/serve/byte_range.h"
#include "app/serve/http_stream.h"
#include "core/clock.h"
#include "core/identity.h"
#include "core/result.h"
#include "ingest/ingest.h"

namespace tocsin::app {

/// Where a trace begins on the topic `tensors`.
struct TracePlace {
  std::int32_t partition = 0;
  std::int64_t offset = 0;  // of its first chunk
  std::uint64_t bytes = 0;
  std::string uri;  // else the topic has it: file:///… or s3://…, frames of ours around it
  std::uint64_t object_offset = 0, object_bytes = 0;  // of those frames in there
};

/// Reads the topic around the time of the answer, for at most twenty seconds. not_found: it is not
/// there (any more); unavailable: the time was over.
core::Result<TracePlace> find_trace(ingest::Transport& transport, const core::RunUid& run,
                                    const SentTrace& trace, const core::Clock& clock);

/// `range` of a trace that the topic has. A piece is as long as a chunk or two, however long the
/// trace is. `open` counts down when it is gone. `transport` outlives the stream.
std::shared_ptr<HttpStream> trace_stream(ingest::Transport& transport, const core::RunUid& run,
                                         const SentTrace& trace, const TracePlace& place,
                                         ByteRange range, std::shared_ptr<std::atomic<int>> open);

}  // namespace tocsin::app
