// Matchers as a key of a configuration: a text or a list of texts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"

namespace tocsin::routing {

/// The texts of `key`; empty when it is not there. Texts that do not parse are reported at their place.
std::vector<std::string> read_matchers(config::Reader& in, std::string_view key,
                                       std::string_view help);

}  // namespace tocsin::routing
