#include "app/api/trace_slice.h"

#include <algorithm>

namespace tocsin::app {
namespace {

constexpr const char* kTraceName = "profiler/trace";

}  // namespace

TraceChunks::TraceChunks(const core::RunUid& run, const SentTrace& trace)
    : run_(run),
      key_(core::route_key(run)),
      name_(core::name_hash(kTraceName)),
      worker_(core::name_hash(trace.worker)),
      step_(trace.step),
      attempt_(trace.attempt) {}

std::optional<ingest::TensorChunk> TraceChunks::chunk_in(const core::RecordView& record) const {
  if (record.tombstone || record.key.value_or("") != key_) return std::nullopt;
  return chunk_of(std::as_bytes(std::span(record.text())));
}

std::optional<ingest::TensorChunk> TraceChunks::chunk_of(std::span<const std::byte> frame) const {
  const auto decoded = ingest::decode_frame(frame);
  if (!decoded) return std::nullopt;
  const core::FrameHeader& header = decoded.frame().header();
  const auto chunk = ingest::tensor_chunk(decoded.frame());
  const bool ours = chunk && chunk->name == name_ && header.run == run_ &&
                    header.worker == worker_ && header.step == step_ && header.attempt == attempt_;
  return ours ? chunk : std::nullopt;
}

void TraceSlice::add(const ingest::TensorChunk& chunk, HttpStream::Piece& out) {
  if (out.torn || done()) return;
  if (chunk.byte_offset > at_) {
    out.torn = true;
    return;
  }
  if (chunk.byte_offset < at_) return;
  at_ += chunk.data.size();
  const std::uint64_t first = std::max(chunk.byte_offset, range_.begin);
  const std::uint64_t last = std::min(at_, range_.end);
  if (first >= last) return;
  const auto part = chunk.data.subspan(first - chunk.byte_offset, last - first);
  out.text.append(reinterpret_cast<const char*>(part.data()), part.size());
}

}  // namespace tocsin::app
