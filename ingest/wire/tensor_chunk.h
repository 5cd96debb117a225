// Raw tensors on the topic `tensors` (docs/raw-tensors.md): one piece of a tensor, or a word of where
// the tensor lies; and a tensor from its pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/codes.h"
#include "core/frame.h"

namespace tocsin::ingest {

inline constexpr std::uint16_t kAboutTag = 16;    // of TensorAbout, as an extension of a frame
inline constexpr std::uint16_t kDataRefTag = 17;  // of TensorRef

/// Extension 16, with chunk 0 of a tensor: what makes it readable without a dictionary.
struct TensorAbout {
  std::uint64_t meta = 0;  // dtype, role and flags, as a row of statistics has them
  std::string_view name;
  std::string_view worker;
};

/// Extension 17: no data here. The frames of the tensor are these bytes of that object.
struct TensorRef {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::string_view uri;  // file:///… or s3://bucket/key
};

/// One piece of a raw tensor (kind 8); borrows from the frame.
struct TensorChunk {
  std::uint64_t name = 0;
  core::Dtype dtype = core::Dtype::unknown;
  std::uint32_t chunk = 0;  // 0 … chunks - 1
  std::uint32_t chunks = 1;
  std::uint64_t byte_offset = 0;          // of this piece inside the tensor's data
  std::uint64_t total_bytes = 0;          // of the tensor's data
  std::span<const std::byte> dims_bytes;  // i64[ndim]
  std::span<const std::byte> data;        // row major, little-endian

  std::optional<TensorAbout> about;
  std::optional<TensorRef> dataref;

  [[nodiscard]] std::vector<std::int64_t> dims() const;
};

/// What the body of a kind 8 frame says; text with static lifetime when its lengths contradict each
/// other, else empty. Total, and without allocation.
std::string_view read_tensor_chunk(std::span<const std::byte> body, TensorChunk& out) noexcept;

/// The chunk of a kind 8 frame; nullopt for other kinds.
[[nodiscard]] std::optional<TensorChunk> tensor_chunk(const core::FrameView& frame) noexcept;

/// Puts a tensor together from chunks in any order. Holds as many bytes as it was given.
class TensorAssembly {
 public:
  enum class Added {
    taken,
    duplicate,    // this chunk is there already: the first one stays
    contradicts,  // another dtype, shape, size or number of chunks than the chunks before
  };
  Added add(const TensorChunk& chunk);
  /// All chunks are there.
  [[nodiscard]] bool whole() const noexcept { return begun_ && pieces_.size() == chunks_; }
  /// Why take() gives nothing, for people; empty: it gives the tensor.
  [[nodiscard]] std::string wrong() const;
  /// The elements, row major; nullopt: see wrong().
  [[nodiscard]] std::optional<std::vector<std::byte>> take() const;

  [[nodiscard]] core::Dtype dtype() const noexcept { return dtype_; }
  [[nodiscard]] const std::vector<std::int64_t>& dims() const noexcept { return dims_; }

 private:
  struct Piece {
    std::uint64_t offset = 0;
    std::vector<std::byte> data;
  };
  bool begun_ = false;
  core::Dtype dtype_ = core::Dtype::unknown;
  std::vector<std::int64_t> dims_;
  std::uint64_t total_ = 0;
  std::uint32_t chunks_ = 0;
  std::map<std::uint32_t, Piece> pieces_;
};

}  // namespace tocsin::ingest
