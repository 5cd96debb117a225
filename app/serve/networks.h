// Networks as they are configured: 10.0.0.0/8, fd00::/8, or one address.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace tocsin::app {

class Networks {
 public:
  /// invalid_argument: one that is no network.
  static core::Result<Networks> parse(std::span<const std::string> networks);

  /// False for what is no address.
  [[nodiscard]] bool holds(std::string_view address) const;

 private:
  struct Network {
    std::array<std::uint8_t, 16> base{};  // IPv4 in its mapped form ::ffff:a.b.c.d
    int bits = 0;                         // of 128
  };
  std::vector<Network> networks_;
};

}  // namespace tocsin::app
