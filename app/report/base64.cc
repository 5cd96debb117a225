#include "app/report/base64.h"

#include <cstddef>
#include <cstdint>

namespace tocsin::app::report {

std::string base64(std::string_view bytes) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t three = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      three = three << 8U |
              (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : std::uint8_t{0});
    }
    const std::size_t left = bytes.size() - i;
    out += kDigits[three >> 18U & 63U];
    out += kDigits[three >> 12U & 63U];
    out += left > 1 ? kDigits[three >> 6U & 63U] : '=';
    out += left > 2 ? kDigits[three & 63U] : '=';
  }
  return out;
}

}  // namespace tocsin::app::report
