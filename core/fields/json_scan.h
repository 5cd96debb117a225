// The quick way to a tape, for what nearly every text is: JSON in ASCII as programs write it. What it
// does not take, the library judges (json_tape.cc).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/fields/json_tape.h"

namespace tocsin::core {

/// Appends the values of `text` to `nodes` and `texts`. False: this is no JSON, or one that needs
/// care (too deep, too many keys, a key that comes twice, more than ASCII, a number beyond the
/// usual); what was appended by then is worthless.
bool scan_json(std::string_view text, std::vector<JsonTape::Node>& nodes, std::string& texts);

}  // namespace tocsin::core
