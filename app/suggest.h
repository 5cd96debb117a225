// Mistyped commands and options, with the nearest that there is.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace tocsin::app {

/// Why these words (without the program's name) name a command or option that does not exist;
/// empty: nothing to say, whatever else may be wrong with them.
std::string unknown_word(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace tocsin::app
