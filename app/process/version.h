// Which version of Tocsin this is, and what compiled it.
#pragma once

#include <string>

namespace tocsin::app {

/// For example "1.2.3"; the same that `tocsin version` prints.
std::string build_version();
/// For example "tocsin 1.2.3".
std::string version_text();
/// "gcc 12.2.0"
std::string build_compiler();

}  // namespace tocsin::app
