// Text from outside on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace tocsin::app {

/// core::visible(): what a job or a far side wrote must not move the cursor, colour the screen, reorder
/// what stands beside it, or hide.
std::string printable(std::string_view text);

}  // namespace tocsin::app
