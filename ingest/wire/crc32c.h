// CRC32C (Castagnoli, RFC 3720 B.4): of frames and journal batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tocsin::ingest {

/// CRC32C of `bytes`, going on from `crc` (the result for what came before; 0 at the start), by
/// ISA-L. crc32c("123456789") = 0xe3069283.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc = 0) noexcept;

}  // namespace tocsin::ingest
