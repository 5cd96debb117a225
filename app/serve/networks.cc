#include "app/serve/networks.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using AddressBytes = std::array<std::uint8_t, 16>;
constexpr int kMappedBits = 96;

struct ParsedAddress {
  AddressBytes bytes{};
  bool four = false;
};

std::optional<ParsedAddress> parsed_address(std::string_view text) {
  const std::string address(text);
  ParsedAddress out;
  if (inet_pton(AF_INET6, address.c_str(), out.bytes.data()) == 1) return out;
  out.bytes = {};
  out.bytes[10] = out.bytes[11] = 0xFF;
  out.four = true;
  if (inet_pton(AF_INET, address.c_str(), &out.bytes[12]) == 1) return out;
  return std::nullopt;
}

bool same_bits(const AddressBytes& a, const AddressBytes& b, int bits) {
  const auto whole = static_cast<std::size_t>(bits / 8);
  if (!std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(whole), b.begin()))
    return false;
  const int rest = bits % 8;
  return rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}

}  // namespace

core::Result<Networks> Networks::parse(std::span<const std::string> networks) {
  Networks out;
  for (const std::string& text : networks) {
    const std::size_t slash = std::min(text.find('/'), text.size());
    const auto address = parsed_address(std::string_view(text).substr(0, slash));
    const int most = address && address->four ? 32 : 128;
    int bits = most;
    if (slash < text.size()) {
      const char* last = text.data() + text.size();
      const auto [end, failure] = std::from_chars(text.data() + slash + 1, last, bits);
      if (failure != std::errc{} || end != last) bits = -1;
    }
    if (!address || bits < 0 || bits > most) {
      return core::invalid_argument("\"" + core::visible(text, 100) +
                                    "\" is no network such as 10.0.0.0/8 or fd00::/8");
    }
    out.networks_.push_back({address->bytes, address->four ? bits + kMappedBits : bits});
  }
  return out;
}

bool Networks::holds(std::string_view address) const {
  const auto parsed = parsed_address(address);
  return parsed && std::any_of(networks_.begin(), networks_.end(), [&](const Network& network) {
           return same_bits(network.base, parsed->bytes, network.bits);
         });
}

}  // namespace tocsin::app
