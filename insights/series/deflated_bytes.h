// Bytes as a zlib stream (RFC 1950). ISA-L stays in here.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tocsin::insights {

/// Appends `bytes` to `out` as a stream. Whoever has zlib reads it.
void append_deflated(std::string_view bytes, std::string& out);

/// False: `bytes` are no stream of `size` bytes, or damaged; what is at `to`, which has room for them, is undefined.
bool inflate_to(std::string_view bytes, char* to, std::size_t size);

}  // namespace tocsin::insights
