// Text from outside on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace tocsin::app {

/// Control characters, also those of two bytes in UTF-8 (U+0080…U+009F), become blanks: what a job
/// or a far side wrote must not move the cursor or colour the screen.
std::string printable(std::string_view text);

}  // namespace tocsin::app
