// `tocsin init`: a configuration to start from.
#pragma once

#include <string>

namespace tocsin::app {

/// Writes the starter to `path`; never over a file that is there (exit code 1).
int init_command(const std::string& path, bool json = false);

}  // namespace tocsin::app
