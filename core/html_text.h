// Text of others inside an HTML page.
#pragma once

#include <string>
#include <string_view>

namespace tocsin::core {

/// For text between tags and for attributes in quotes. Invisible characters, as `visible` knows them
/// (controls, bidi marks), are blanks; each byte that is not UTF-8 is U+FFFD. Newlines stay: HTML
/// shows them as blanks.
std::string html_escaped(std::string_view text);

}  // namespace tocsin::core
