// Which addresses a request may go to: keeps a configured or resolved name from reaching this
// machine, the private network or a metadata service (docs/actions/webhook.md). Internal.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace tocsin::actions {

/// An IPv6 address, or an IPv4 one in its mapped form ::ffff:a.b.c.d.
using Address = std::array<std::uint8_t, 16>;

/// Bytes in network order: 4 or 16 of them.
Address address_from(const std::uint8_t* bytes, std::size_t size);
/// Literal IPv4 or IPv6 (brackets allowed); not_found for anything else, such as a name.
core::Result<Address> parse_address(std::string_view text);

class AddressGuard {
 public:
  AddressGuard() = default;
  /// `allow_private`: networks such as 127.0.0.0/8 or fd00::/8 that may be reached although they
  /// are not public. invalid_argument names the entry that is no network.
  static core::Result<AddressGuard> create(const std::vector<std::string>& allow_private);

  /// False for loopback, link-local, unspecified, multicast, private, shared (100.64/10), unique
  /// local addresses and what embeds one (v4-mapped, NAT64, 6to4), unless allowed by name; always
  /// false for metadata services (169.254.169.254, fd00:ec2::254).
  [[nodiscard]] bool allows(const Address& address) const;
  friend bool operator==(const AddressGuard&, const AddressGuard&) = default;

 private:
  struct Network {
    Address base{};
    int bits = 0;  // of 128
    friend bool operator==(const Network&, const Network&) = default;
  };
  std::vector<Network> allowed_;
};

}  // namespace tocsin::actions
