#include "ingest/wire/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace tocsin::ingest {

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc) noexcept {
  constexpr std::size_t kMost = std::size_t{1} << 30;  // its sizes are ints
  crc = ~crc;                                          // the library leaves that to its caller
  while (!bytes.empty()) {
    const std::size_t size = std::min(bytes.size(), kMost);
    auto* data =
        reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));  // only read
    crc = crc32_iscsi(data, static_cast<int>(size), crc);
    bytes = bytes.subspan(size);
  }
  return ~crc;
}

}  // namespace tocsin::ingest
