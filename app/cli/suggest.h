// Mistyped commands and options, with the nearest that there is.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace tocsin::app {

/// Why these words (without the program's name) name a command or option that does not exist;
/// empty: nothing to say, whatever else may be wrong with them.
std::string unknown_word(const CLI::App& app, const std::vector<std::string>& words);

/// What to say of words that the parser refused with `error`, one line.
std::string refused(const CLI::App& app, const std::vector<std::string>& words,
                    const CLI::ParseError& error);

}  // namespace tocsin::app
