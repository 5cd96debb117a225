// Which phases of a step are timed without being asked for: the key `capture.phases`.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace tocsin::hook {

/// All that a hook knows (docs/wire.md, spans).
const std::vector<std::string>& all_phases();

/// Reads `phases`: names out of all_phases(), or false for none.
void read_phases(config::Reader& in, std::vector<std::string>& out);

}  // namespace tocsin::hook
