#include "insights/series/deflated_bytes.h"

#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>

namespace tocsin::insights {
namespace {

constexpr std::size_t kStreamHead = 2 + ISAL_DEF_MAX_HDR_SIZE;  // and the first block's
constexpr std::size_t kOfABlock = 65'535;  // bytes, if they are left as they are
constexpr std::size_t kBlockHead = 5;
constexpr std::size_t kChecksum = 4;
constexpr std::size_t kMostAtOnce = std::size_t{1} << 30U;  // ISA-L's sizes are of 32 bits

// 170 KiB that need no clearing, once for each thread that writes or reads.
struct Deflating {
  isal_zstream stream;
  std::array<std::uint8_t, ISAL_DEF_LVL1_SMALL> level;
};

Deflating& deflating() {
  static thread_local const std::unique_ptr<Deflating> kept(new Deflating);
  return *kept;
}

inflate_state& inflating() {
  static thread_local const std::unique_ptr<inflate_state> kept(new inflate_state);
  return *kept;
}

std::uint8_t* as_bytes(const char* from) {
  return reinterpret_cast<std::uint8_t*>(const_cast<char*>(from));  // only read where it is const
}

}  // namespace

void append_deflated(std::string_view bytes, std::string& out) {
  const std::size_t before = out.size();
  const std::size_t blocks = bytes.size() / kOfABlock + 1;
  out.resize(before + bytes.size() + kStreamHead + blocks * kBlockHead + kChecksum);
  Deflating& by = deflating();
  isal_deflate_stateless_init(&by.stream);
  by.stream.level = 1;
  by.stream.level_buf = by.level.data();
  by.stream.level_buf_size = static_cast<std::uint32_t>(by.level.size());
  by.stream.gzip_flag = IGZIP_ZLIB;
  by.stream.flush = NO_FLUSH;
  by.stream.end_of_stream = 1;
  by.stream.next_in = as_bytes(bytes.data());
  by.stream.avail_in = static_cast<std::uint32_t>(std::min(bytes.size(), kMostAtOnce));
  by.stream.next_out = as_bytes(out.data()) + before;
  by.stream.avail_out = static_cast<std::uint32_t>(out.size() - before);
  isal_deflate_stateless(&by.stream);  // has room for all that it may write
  out.resize(before + by.stream.total_out);
}

bool inflate_to(std::string_view bytes, char* to, std::size_t size) {
  inflate_state& by = inflating();
  isal_inflate_init(&by);
  by.crc_flag = ISAL_ZLIB;
  by.next_in = as_bytes(bytes.data());
  by.avail_in = static_cast<std::uint32_t>(std::min(bytes.size(), kMostAtOnce));
  by.next_out = as_bytes(to);
  by.avail_out = static_cast<std::uint32_t>(std::min(size, kMostAtOnce));
  return isal_inflate_stateless(&by) == ISAL_DECOMP_OK && by.total_out == size;
}

}  // namespace tocsin::insights
