// A word as POSIX shells take it: quoted where it must be. Internal to actions.
#pragma once

#include <string>
#include <string_view>

namespace tocsin::actions {

std::string shell_word(std::string_view text);

}  // namespace tocsin::actions
