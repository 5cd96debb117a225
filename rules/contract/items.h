// Lists as the original spells them: its parameters are texts, so that a list is one text with commas.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"

namespace tocsin::rules {

/// Declares a list of texts, which may also be one text with commas between its items; spaces around
/// them do not count. `items` may hold regular expressions: a comma in brackets or behind a
/// backslash is theirs.
void read_items(config::Reader& in, std::string_view key, std::vector<std::string>& items,
                std::string_view help);

}  // namespace tocsin::rules
