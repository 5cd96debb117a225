// Any bytes as the headers column of a journal's record: read within bounds, and what was read
// packs to the same again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "ingest/journal/headers.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tocsin;  // a program of one file
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto headers = ingest::unpack_headers(bytes);
  const auto packed = ingest::pack_headers(headers);
  if (!packed || bytes.substr(0, packed->size()) != *packed) std::abort();
  for (const auto& [name, value] : headers) {
    if (!ingest::find_header(bytes, name)) std::abort();
  }
  return 0;
}
