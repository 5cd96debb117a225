// One log event as a line for the person at a terminal.
#pragma once

#include <string>
#include <string_view>

#include "core/log.h"
#include "core/time.h"
#include "core/value.h"

namespace tocsin::app {

/// "17:03:04 ISSUE exploding_tensor (error): loss became NaN … → advice". Events that people wait
/// for are sentences, all others their name and fields; empty fields are left out. Local time. What
/// came from outside cannot move the cursor: control characters become blanks. No newline.
std::string console_line(core::Level level, std::string_view event, const core::ValueMap& fields,
                         core::WallTime time, bool colour);

/// Colours on this stream: a terminal that can show them, and no NO_COLOR in the environment.
bool shows_colour(int descriptor);

}  // namespace tocsin::app
