// Where an issue carries what a failed process said last.
#pragma once

#include <string_view>

namespace tocsin::core {

/// In `evidence.values`: lines of text, the last one the newest. The first line of the error is not among them: the summary has it.
inline constexpr std::string_view kConsoleValue = "console";

}  // namespace tocsin::core
