// Keys of an item of `rules:` that names a file of the user's: `source`.
#pragma once

#include <string_view>

#include "config/config.h"
#include "rules/rules.h"

namespace tocsin::rules::hosted {

inline constexpr std::string_view kPython = "python";

/// Reads and checks the item's keys; the settings are complete, or errors say what is wrong. The
/// version of the rule is that of its file: a changed file is a changed rule.
void read(config::Reader& item, RuleSettings& settings);

}  // namespace tocsin::rules::hosted
