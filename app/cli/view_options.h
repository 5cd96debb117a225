// The commands that look and change nothing, on the command line.
#pragma once

#include <CLI/CLI.hpp>

#include "app/cli/commands.h"

namespace tocsin::app {

/// status, issues, tail.
void add_views(CLI::App& app, Invocation& out);

}  // namespace tocsin::app
