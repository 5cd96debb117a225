// Tensors put together from any chunks: every chunk of every record is read without a crash, and what
// comes out has the size that its shape says. The input is a list of records; each one's CRC is made
// right, else nothing behind it would ever be reached.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "ingest/ingest.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

/// A record of kind 8 with this body.
std::vector<std::byte> record_of(std::span<const std::byte> body) {
  tocsin::core::FrameHeader header;
  header.kind = tocsin::core::FrameKind::tensor_chunk;
  header.row_count = 1;
  header.body_length = static_cast<std::uint32_t>(body.size());
  std::vector<std::byte> out(sizeof header + body.size());
  std::memcpy(out.data(), &header, sizeof header);
  if (!body.empty()) std::memcpy(out.data() + sizeof header, body.data(), body.size());
  const std::uint32_t crc = tocsin::ingest::crc32c(out);
  std::memcpy(out.data() + 20, &crc, sizeof crc);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tocsin::ingest::TensorAssembly parts;
  std::span<const std::byte> rest(reinterpret_cast<const std::byte*>(data), size);
  while (rest.size() >= 2) {
    std::uint16_t length = 0;
    std::memcpy(&length, rest.data(), sizeof length);
    const std::size_t body = std::min<std::size_t>(length, rest.size() - 2);
    const std::vector<std::byte> record = record_of(rest.subspan(2, body));
    rest = rest.subspan(2 + body);
    const auto decoded = tocsin::ingest::decode_frame(record);
    if (!decoded) continue;
    const auto chunk = tocsin::ingest::tensor_chunk(decoded.frame());
    require(chunk.has_value());
    if (chunk->about) require(chunk->about->name.size() <= record.size());
    if (chunk->dataref) require(!chunk->dataref->uri.empty());
    (void)parts.add(*chunk);
  }
  const auto tensor = parts.take();
  require(tensor.has_value() == parts.wrong().empty());
  if (!tensor) return 0;
  std::uint64_t bytes = tocsin::core::size_of(parts.dtype());
  for (const std::int64_t extent : parts.dims()) bytes *= static_cast<std::uint64_t>(extent);
  require(tensor->size() == bytes);
  return 0;
}
