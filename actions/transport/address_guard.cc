#include "actions/transport/address_guard.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <span>

namespace tocsin::actions {
namespace {

constexpr int kMappedBits = 96;
constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr std::array<std::uint8_t, 12> kNat64{0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0};

bool inside(const Address& address, const Address& base, int bits) {
  const auto whole = static_cast<std::size_t>(bits / 8);
  if (!std::equal(base.begin(), base.begin() + static_cast<std::ptrdiff_t>(whole),
                  address.begin())) {
    return false;
  }
  if (bits % 8 == 0) return true;
  const auto mask = static_cast<std::uint8_t>(0xff00U >> (bits % 8));
  return (address[whole] & mask) == (base[whole] & mask);
}

Address mapped(const std::uint8_t* v4) {
  Address out{};
  std::copy(kMapped.begin(), kMapped.end(), out.begin());
  std::memcpy(out.data() + kMapped.size(), v4, 4);
  return out;
}

// The IPv4 address that an IPv6 one stands for: mapped, NAT64 or 6to4.
std::optional<Address> embedded(const Address& address) {
  if (std::equal(kNat64.begin(), kNat64.end(), address.begin())) return mapped(address.data() + 12);
  if (address[0] == 0x20 && address[1] == 0x02) return mapped(address.data() + 2);
  const bool compatible =
      std::all_of(address.begin(), address.begin() + 12, [](std::uint8_t b) { return b == 0; });
  const bool loopback_or_none = address[12] == 0 && address[13] == 0 && address[14] == 0;
  if (compatible && !loopback_or_none) return mapped(address.data() + 12);
  return std::nullopt;
}

struct Special {
  const char* network;
  int bits;  // of the family's own length
};

// IANA special-purpose registries (RFC 6890 and its successors), what is not globally reachable.
constexpr Special kNotPublic[] = {
    {"0.0.0.0", 8},      {"10.0.0.0", 8},    {"100.64.0.0", 10},   {"127.0.0.0", 8},
    {"169.254.0.0", 16}, {"172.16.0.0", 12}, {"192.0.0.0", 24},    {"192.0.2.0", 24},
    {"192.168.0.0", 16}, {"198.18.0.0", 15}, {"198.51.100.0", 24}, {"203.0.113.0", 24},
    {"224.0.0.0", 4},    {"240.0.0.0", 4},   {"::", 128},          {"::1", 128},
    {"64:ff9b:1::", 48}, {"100::", 64},      {"2001:db8::", 32},   {"fc00::", 7},
    {"fe80::", 10},      {"fec0::", 10},     {"ff00::", 8},
};

constexpr const char* kMetadata[] = {"169.254.169.254", "fd00:ec2::254", "169.254.170.2",
                                     "100.100.100.200"};

}  // namespace

Address address_from(const std::uint8_t* bytes, std::size_t size) {
  if (size == 4) return mapped(bytes);
  Address out{};
  std::memcpy(out.data(), bytes, std::min(size, out.size()));
  return out;
}

core::Result<Address> parse_address(std::string_view text) {
  if (text.size() > 2 && text.front() == '[' && text.back() == ']') {
    text = text.substr(1, text.size() - 2);
  }
  const std::string copy(text.substr(0, text.find('%')));  // a zone says where, not which
  std::array<std::uint8_t, 16> bytes{};
  if (inet_pton(AF_INET, copy.c_str(), bytes.data()) == 1) return address_from(bytes.data(), 4);
  if (inet_pton(AF_INET6, copy.c_str(), bytes.data()) == 1) return address_from(bytes.data(), 16);
  return core::not_found("not an address: " + copy);
}

core::Result<AddressGuard> AddressGuard::create(const std::vector<std::string>& allow_private) {
  AddressGuard out;
  for (const std::string& text : allow_private) {
    const std::size_t slash = text.find('/');
    const std::string_view base = std::string_view(text).substr(0, slash);
    const auto address = parse_address(base);
    const bool v6 = base.find(':') != std::string_view::npos;
    const int longest = v6 ? 128 : 32;
    int bits = longest;
    if (slash != std::string::npos) {
      const char* end = text.data() + text.size();
      const auto read = std::from_chars(text.data() + slash + 1, end, bits);
      if (read.ec != std::errc{} || read.ptr != end || bits < 0 || bits > longest) bits = -1;
    }
    if (!address || bits < 0) {
      return core::invalid_argument(
          "\"" + text + "\" is no network; expected one such as 127.0.0.0/8 or fd00::/8");
    }
    out.allowed_.push_back({*address, v6 ? bits : kMappedBits + bits});
  }
  return out;
}

bool AddressGuard::allows(const Address& address) const {
  for (const char* text : kMetadata) {
    if (*parse_address(text) == address) return false;
  }
  if (const auto inner = embedded(address)) return allows(*inner);
  for (const Network& network : allowed_) {
    if (inside(address, network.base, network.bits)) return true;
  }
  return std::none_of(std::begin(kNotPublic), std::end(kNotPublic), [&](const Special& special) {
    const bool v6 = std::strchr(special.network, ':') != nullptr;
    return inside(address, *parse_address(special.network),
                  v6 ? special.bits : kMappedBits + special.bits);
  });
}

}  // namespace tocsin::actions
