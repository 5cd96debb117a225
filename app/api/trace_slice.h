// What of a trace is asked for, and which records and frames are its chunks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "app/api/trace_rows.h"
#include "app/serve/byte_range.h"
#include "app/serve/http_stream.h"
#include "core/identity.h"
#include "core/record_source.h"
#include "ingest/ingest.h"

namespace tocsin::app {

/// Which chunks are of one trace.
class TraceChunks {
 public:
  TraceChunks(const core::RunUid& run, const SentTrace& trace);

  /// Borrows from the record.
  [[nodiscard]] std::optional<ingest::TensorChunk> chunk_in(const core::RecordView& record) const;
  /// Borrows from the bytes of one frame.
  [[nodiscard]] std::optional<ingest::TensorChunk> chunk_of(std::span<const std::byte> frame) const;

 private:
  core::RunUid run_;
  std::string key_;
  std::uint64_t name_;
  std::uint64_t worker_;
  std::int64_t step_;
  std::uint32_t attempt_;
};

/// The bytes of a range, out of chunks in their order. One that came before is passed over.
class TraceSlice {
 public:
  explicit TraceSlice(ByteRange range) : range_(range) {}

  /// Adds to `out` what is in the range; torn: a chunk is missing.
  void add(const ingest::TensorChunk& chunk, HttpStream::Piece& out);
  [[nodiscard]] bool done() const { return at_ >= range_.end; }

 private:
  ByteRange range_;
  std::uint64_t at_ = 0;  // byte of the trace that comes next
};

}  // namespace tocsin::app
