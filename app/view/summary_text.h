// What a rule sums up of a run, for people.
#pragma once

#include <cstddef>
#include <string>

#include "core/value.h"

namespace tocsin::app {

/// One line: "node-a: gpu: p50 41.5, max 66; means too little work". Lists are cut behind eight
/// items, the whole behind `most` bytes; what is cut ends in "…".
std::string summary_line(const core::ValueMap& summary, std::size_t most);

/// Lines, each indented by `indent` blanks and two more per level; numbers and texts that stand side
/// by side share one.
std::string summary_lines(const core::ValueMap& summary, std::size_t indent);

}  // namespace tocsin::app
