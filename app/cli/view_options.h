// The commands that look and change nothing, on the command line.
#pragma once

#include <CLI/CLI.hpp>

#include "app/cli/command_run.h"

namespace tocsin::app {

void add_status(CLI::App& app, CommandRun& out);
/// list, show, reproduce.
void add_issues(CLI::App& app, CommandRun& out);
/// list, show.
void add_groups(CLI::App& app, CommandRun& out);
void add_tail(CLI::App& app, CommandRun& out);

}  // namespace tocsin::app
