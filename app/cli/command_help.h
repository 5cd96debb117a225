// What --help, the manual page and the shells' completions say of each command.
#pragma once

#include <CLI/CLI.hpp>

namespace tocsin::app {

/// Gives the program and each of its commands its sentence, exit codes and examples. Throws
/// std::logic_error for a command that has none: a new one needs its lines here.
void add_help(CLI::App& app);

}  // namespace tocsin::app
