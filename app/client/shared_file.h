// A configuration file that several programs share, read for the sections of one: whatever stands in the others, YAML
// that cannot be read included, takes nothing away.
#pragma once

#include <functional>
#include <string>

#include "config/config.h"

namespace tocsin::app::client {

/// Runs `read` over its own sections. Problems of these are errors, each of which leaves the default. A place without
/// a path where the file is no YAML, outside of them, is a warning; other problems there are nobody's here.
void read_own_sections(const std::string& path, const config::Environment& environment,
                       const std::function<void(config::Reader&)>& read,
                       config::Diagnostics& problems);

}  // namespace tocsin::app::client
