// What a person most likely meant who wrote a time in other words than ours.
#pragma once

#include <string>
#include <string_view>

namespace tocsin::core {

/// "5m" for "5 min", "1.5h" for "1.5 hours", "30s" for "30 S"; empty: nothing that we know, no
/// number in front, or a negative one. `text` is what a configuration holds.
std::string duration_meant(std::string_view text);

/// "; write 5m" for a value that is no duration, to go behind an error; for a bare number what is
/// missing; empty: no idea.
std::string duration_hint(std::string_view text);

}  // namespace tocsin::core
