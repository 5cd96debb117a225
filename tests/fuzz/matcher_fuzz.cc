// Matchers from any bytes: never crash, and the canonical text of what parses parses to the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "routing/routing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 4096) return 0;  // the size limit of a label value
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parsed = tocsin::routing::Matchers::parse(text);
  if (!parsed) {
    if (parsed.error().message.empty()) std::abort();
    return 0;
  }
  const std::string canonical = parsed->canonical();
  const auto again = tocsin::routing::Matchers::parse(canonical);
  if (!again || again->canonical() != canonical) std::abort();
  const tocsin::core::Labels labels{{"a", "x"}, {"severity", "error"}, {"job", canonical}};
  if (parsed->matches(labels) != again->matches(labels)) std::abort();
  return 0;
}
