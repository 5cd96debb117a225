#include "app/report/escape.h"

#include <optional>

#include "app/printable.h"
#include "core/text.h"

namespace tocsin::app::report {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// U+202A…U+202E and U+2066…U+2069.
bool turns_direction(std::string_view at) {
  if (at.size() < 3 || at[0] != '\xE2') return false;
  const auto second = static_cast<unsigned char>(at[1]);
  const auto third = static_cast<unsigned char>(at[2]);
  return (second == 0x80 && third >= 0xAA && third <= 0xAE) ||
         (second == 0x81 && third >= 0xA6 && third <= 0xA9);
}

void escape_valid(std::string_view text, std::string& out) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (turns_direction(text.substr(i))) {
      out += kReplacement;
      i += 2;
      continue;
    }
    switch (text[i]) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += text[i];
    }
  }
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 16);
  while (const auto bad = core::first_invalid_utf8(text)) {
    escape_valid(printable(text.substr(0, *bad)), out);
    out += kReplacement;
    text.remove_prefix(*bad + 1);
  }
  escape_valid(printable(text), out);
  return out;
}

}  // namespace tocsin::app::report
