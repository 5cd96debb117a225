// Bytes as text, in a page.
#pragma once

#include <string>
#include <string_view>

namespace tocsin::app::report {

/// RFC 4648, with '='.
std::string base64(std::string_view bytes);

}  // namespace tocsin::app::report
