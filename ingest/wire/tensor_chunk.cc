#include "ingest/wire/tensor_chunk.h"

#include <cstring>

#include "ingest/wire/field.h"

namespace tocsin::ingest {
namespace {

constexpr std::size_t kChunkHead = 40;

bool read_about(std::span<const std::byte> payload, TensorAbout& out) noexcept {
  if (payload.size() < 16) return false;
  const std::size_t name = load<std::uint32_t>(payload, 8);
  const std::size_t worker = load<std::uint32_t>(payload, 12);
  if (16 + name + worker > payload.size()) return false;
  out.meta = load<std::uint64_t>(payload, 0);
  out.name = text_of(payload.subspan(16, name));
  out.worker = text_of(payload.subspan(16 + name, worker));
  return true;
}

bool read_dataref(std::span<const std::byte> payload, TensorRef& out) noexcept {
  if (payload.size() < 17) return false;
  out.offset = load<std::uint64_t>(payload, 0);
  out.bytes = load<std::uint64_t>(payload, 8);
  out.uri = text_of(payload.subspan(16));
  return out.offset + out.bytes >= out.offset;
}

std::string_view read_extensions(std::span<const std::byte> area, TensorChunk& out) noexcept {
  std::size_t at = 0;
  while (at < area.size()) {
    if (area.size() - at < 8) return "the tensor chunk ends inside an extension's head";
    const auto tag = load<std::uint16_t>(area, at);
    const std::size_t length = load<std::uint32_t>(area, at + 4);
    if (padded(length) > area.size() - at - 8) {
      return "an extension reaches beyond the tensor chunk";
    }
    const std::span<const std::byte> payload = area.subspan(at + 8, length);
    if (tag == kAboutTag && !read_about(payload, out.about.emplace())) {
      return "the name of a tensor does not fit its extension";
    }
    if (tag == kDataRefTag && !read_dataref(payload, out.dataref.emplace())) {
      return "a reference does not fit its extension";
    }
    at += 8 + padded(length);
  }
  return {};
}

}  // namespace

std::vector<std::int64_t> TensorChunk::dims() const {
  std::vector<std::int64_t> out(dims_bytes.size() / sizeof(std::int64_t));
  if (!out.empty()) std::memcpy(out.data(), dims_bytes.data(), dims_bytes.size());
  return out;
}

std::string_view read_tensor_chunk(std::span<const std::byte> body, TensorChunk& out) noexcept {
  constexpr std::string_view kWrong = "the tensor chunk's lengths contradict each other";
  if (body.size() < kChunkHead) return kWrong;
  const std::size_t dims = std::to_integer<std::size_t>(body[9]) * 8;
  const std::size_t data = load<std::uint32_t>(body, 20);
  const std::size_t end = kChunkHead + dims + data;
  if (end > body.size()) return kWrong;
  out.name = load<std::uint64_t>(body, 0);
  out.dtype = static_cast<core::Dtype>(body[8]);
  out.chunk = load<std::uint32_t>(body, 12);
  out.chunks = load<std::uint32_t>(body, 16);
  out.byte_offset = load<std::uint64_t>(body, 24);
  out.total_bytes = load<std::uint64_t>(body, 32);
  out.dims_bytes = body.subspan(kChunkHead, dims);
  out.data = body.subspan(kChunkHead + dims, data);
  if (out.chunk >= out.chunks || out.byte_offset > out.total_bytes ||
      data > out.total_bytes - out.byte_offset) {
    return kWrong;
  }
  // Without extensions the padding may be missing, too.
  return padded(end) >= body.size() ? std::string_view()
                                    : read_extensions(body.subspan(padded(end)), out);
}

std::optional<TensorChunk> tensor_chunk(const core::FrameView& frame) noexcept {
  TensorChunk chunk;
  if (frame.header().kind != core::FrameKind::tensor_chunk ||
      !read_tensor_chunk(frame.body(), chunk).empty()) {
    return std::nullopt;
  }
  return chunk;
}

TensorAssembly::Added TensorAssembly::add(const TensorChunk& chunk) {
  if (!begun_) {
    begun_ = true;
    dtype_ = chunk.dtype;
    dims_ = chunk.dims();
    total_ = chunk.total_bytes;
    chunks_ = chunk.chunks;
  } else if (dtype_ != chunk.dtype || dims_ != chunk.dims() || total_ != chunk.total_bytes ||
             chunks_ != chunk.chunks) {
    return Added::contradicts;
  }
  const auto [at, fresh] = pieces_.try_emplace(chunk.chunk);
  if (!fresh) return Added::duplicate;
  at->second.offset = chunk.byte_offset;
  at->second.data.assign(chunk.data.begin(), chunk.data.end());
  return Added::taken;
}

std::string TensorAssembly::wrong() const {
  if (!begun_) return "no chunk of it is there";
  if (!whole()) {
    std::uint32_t missing = 0;
    while (pieces_.contains(missing)) ++missing;
    return "chunk " + std::to_string(missing) + " of " + std::to_string(chunks_) + " is missing (" +
           std::to_string(pieces_.size()) + " are there)";
  }
  std::uint64_t next = 0;
  for (const auto& [number, piece] : pieces_) {
    if (piece.offset != next) {
      return "chunk " + std::to_string(number) + " does not begin where the one before it ends";
    }
    next += piece.data.size();
  }
  if (next != total_) return "the chunks hold fewer bytes than the tensor has";
  std::uint64_t expected = core::size_of(dtype_);
  if (expected == 0) return "its elements have no size of their own";
  for (const std::int64_t extent : dims_) {
    if (extent < 0) return "its shape has a negative extent";
    if (extent != 0 && expected > UINT64_MAX / static_cast<std::uint64_t>(extent)) {
      return "its shape is larger than can be";
    }
    expected *= static_cast<std::uint64_t>(extent);
  }
  return expected == total_ ? std::string() : "its shape and its bytes contradict each other";
}

std::optional<std::vector<std::byte>> TensorAssembly::take() const {
  if (!wrong().empty()) return std::nullopt;
  std::vector<std::byte> out;
  out.reserve(total_);
  for (const auto& [number, piece] : pieces_) {
    out.insert(out.end(), piece.data.begin(), piece.data.end());
  }
  return out;
}

}  // namespace tocsin::ingest
