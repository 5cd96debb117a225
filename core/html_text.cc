#include "core/html_text.h"

#include <algorithm>

#include "core/text.h"
#include "core/visible_text.h"

namespace tocsin::core {
namespace {

constexpr std::string_view kBrokenByte = "\xEF\xBF\xBD";

void escape_markup(std::string_view text, std::string& out) {
  for (const char c : text) {
    switch (c) {
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
        out += c;
    }
  }
}

void escape_line(std::string_view line, std::string& out) {
  while (const auto bad = first_invalid_utf8(line)) {
    escape_markup(visible(line.substr(0, *bad)), out);
    out += kBrokenByte;
    line.remove_prefix(*bad + 1);
  }
  escape_markup(visible(line), out);
}

}  // namespace

std::string html_escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 16);
  while (true) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    escape_line(text.substr(0, end), out);
    if (end == text.size()) return out;
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

}  // namespace tocsin::core
