// Which inputs of rules nobody here produces.
#pragma once

#include <string_view>

#include "app/config/app_config.h"
#include "config/config.h"

namespace tocsin::app {

/// What a built-in rule reads that no hook and no collector of ours sends, and who may; empty:
/// nothing is.
std::string_view input_of_others(std::string_view rule_type);

/// Says of each rule that stands in the file which of its inputs cannot exist as `capture` and
/// `collect` are: a warning where they rule it out, a note where somebody else may send it.
void check_inputs(const config::Reader& root, const AppConfig& config);

}  // namespace tocsin::app
