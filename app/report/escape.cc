#include "app/report/escape.h"

#include <optional>

#include "core/text.h"
#include "core/visible_text.h"

namespace tocsin::app::report {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

void escape_valid(std::string_view text, std::string& out) {
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

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 16);
  while (const auto bad = core::first_invalid_utf8(text)) {
    escape_valid(core::visible(text.substr(0, *bad)), out);
    out += kReplacement;
    text.remove_prefix(*bad + 1);
  }
  escape_valid(core::visible(text), out);
  return out;
}

}  // namespace tocsin::app::report
