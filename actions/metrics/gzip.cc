#include "actions/metrics/gzip.h"

#include <zlib.h>

namespace tocsin::actions {

core::Result<std::string> gzip(const std::string& bytes) {
  constexpr int kGzipWindow = 15 + 16;  // the largest window, with the header of gzip
  z_stream stream{};
  const core::Error no_memory{core::Code::resource_exhausted, "no memory to compress a request"};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, 8,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return no_memory;
  }
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int done = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (done != Z_STREAM_END) return no_memory;
  return out;
}

}  // namespace tocsin::actions
