// The values of `--sweep`: LOW..HIGH[:STEPS] or A,B,C.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/value.h"

namespace tocsin::app {

/// invalid_argument: `--sweep: ` and why.
core::Error sweep_error(const std::string& why);

/// A finite number without anything around it; nullopt: `text` is none.
std::optional<double> sweep_number(const std::string& text);

/// The values that `text` names, as a rule's configuration writes them: from 1 to 200. `type` is the
/// parameter's: "boolean" and "string" take lists of words, "integer" rounds, and any other takes
/// numbers or durations. A span whose ends differ by a factor of ten or more is cut into equal
/// ratios, one value per decade without STEPS; a smaller one into equal parts.
core::Result<std::vector<core::Value>> sweep_values(std::string text, const std::string& type);

}  // namespace tocsin::app
