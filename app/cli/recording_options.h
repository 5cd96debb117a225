// The commands that judge what was recorded, on the command line.
#pragma once

#include <CLI/CLI.hpp>

#include "app/cli/command_run.h"

namespace tocsin::app {

void add_replay(CLI::App& app, CommandRun& out);
void add_report(CLI::App& app, CommandRun& out);
void add_test(CLI::App& app, CommandRun& out);

}  // namespace tocsin::app
