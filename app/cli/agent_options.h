// `tocsin agent`, on the command line.
#pragma once

#include <CLI/CLI.hpp>

#include "app/cli/command_run.h"

namespace tocsin::app {

void add_agent(CLI::App& app, CommandRun& out);

}  // namespace tocsin::app
