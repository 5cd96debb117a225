#include "app/printable.h"

namespace tocsin::app {

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
    if (byte == 0xC2 && next >= 0x80 && next < 0xA0) {
      out += ' ';
      ++i;
    } else {
      out += byte < 0x20 || byte == 0x7F ? ' ' : text[i];
    }
  }
  return out;
}

}  // namespace tocsin::app
