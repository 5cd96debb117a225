#include "collectors/hook/raw/raw_frames.h"

#include <algorithm>

namespace tocsin::hook {

ingest::TensorChunk RawFrames::chunk_of(const RawTensor& tensor) const {
  ingest::TensorChunk out;
  out.name = tensor.name;
  out.dtype = tensor.dtype;
  out.total_bytes = tensor.data.size();
  out.dims_bytes = std::as_bytes(std::span(tensor.dims));
  out.about = {tensor.meta, tensor.text, worker_};
  return out;
}

core::Status RawFrames::send(const RawTensor& tensor, const ingest::TensorChunk& chunk, Take take) {
  core::FrameHeader header = tensor.header;
  header.sequence = sequence_;
  const auto frame = writer_.tensor_chunk(header, chunk).finish();
  if (!frame) return frame.error();
  ++sequence_;
  return take(*frame);
}

core::Status RawFrames::chunks(const RawTensor& tensor, Take take) {
  ingest::TensorChunk chunk = chunk_of(tensor);
  const std::span<const std::byte> data = tensor.data;
  chunk.chunks =
      static_cast<std::uint32_t>((std::max<std::uint64_t>(data.size(), 1) - 1) / chunk_) + 1;
  for (; chunk.chunk < chunk.chunks; ++chunk.chunk) {
    chunk.byte_offset = chunk.chunk * chunk_;
    chunk.data = data.subspan(chunk.byte_offset, std::min(chunk_, data.size() - chunk.byte_offset));
    if (auto sent = send(tensor, chunk, take); !sent) return sent;
    chunk.about.reset();
  }
  return core::ok();
}

core::Status RawFrames::reference(const RawTensor& tensor, std::uint64_t offset,
                                  std::uint64_t bytes, std::string_view uri, Take take) {
  ingest::TensorChunk chunk = chunk_of(tensor);
  chunk.dataref = {offset, bytes, uri};
  return send(tensor, chunk, take);
}

}  // namespace tocsin::hook
