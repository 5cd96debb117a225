// Raw tensors as frames: chunks of them, or a word of where they lie.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "collectors/hook/raw/raw_queue.h"
#include "core/function_ref.h"
#include "core/result.h"
#include "ingest/ingest.h"

namespace tocsin::hook {

/// Numbers its frames. Not thread-safe.
class RawFrames {
 public:
  /// Is given each frame; what it returns ends the call unless ok. The bytes are lent.
  using Take = core::FunctionRef<core::Status(std::span<const std::byte>)>;

  /// `worker`: name of who measured. `chunk`: elements' bytes in one frame.
  RawFrames(std::string worker, std::uint64_t chunk) : worker_(std::move(worker)), chunk_(chunk) {}

  core::Status chunks(const RawTensor& tensor, Take take);
  /// The frames of `tensor` are `bytes` at `offset` of the object `uri`.
  core::Status reference(const RawTensor& tensor, std::uint64_t offset, std::uint64_t bytes,
                         std::string_view uri, Take take);

 private:
  [[nodiscard]] ingest::TensorChunk chunk_of(const RawTensor& tensor) const;
  core::Status send(const RawTensor& tensor, const ingest::TensorChunk& chunk, Take take);

  const std::string worker_;
  const std::uint64_t chunk_;
  std::uint64_t sequence_ = 1;
  ingest::FrameWriter writer_;
};

}  // namespace tocsin::hook
