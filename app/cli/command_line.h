// The whole command line of the program: every command, its options and its help.
#pragma once

#include <CLI/CLI.hpp>

#include "app/cli/command_run.h"

namespace tocsin::app {

/// Declares all of it on `app`. Parsing sets `out`, which does the work; parsing alone changes
/// nothing. Both must outlive the run.
void declare_command_line(CLI::App& app, CommandRun& out);

}  // namespace tocsin::app
