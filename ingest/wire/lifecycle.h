// The JSON of lifecycle frames (kind 4, docs/wire.md).
#pragma once

#include <string>
#include <string_view>

#include "core/lifecycle.h"
#include "core/result.h"

namespace tocsin::ingest {

/// One JSON object with `event` and the fields of that event; what is empty is left out.
std::string encode_lifecycle(const core::Lifecycle& lifecycle);

/// Reads a kind 4 body (`frame.body_text()`). Unknown keys are ignored. Error: invalid_argument
/// with the field that is wrong (not an object, unknown event, wrong type, deeper than 32 levels).
core::Result<core::Lifecycle> parse_lifecycle(std::string_view json);

}  // namespace tocsin::ingest
