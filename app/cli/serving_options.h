// The commands that serve until they are told to end, on the command line.
#pragma once

#include <CLI/CLI.hpp>

#include "app/cli/command_run.h"

namespace tocsin::app {

void add_up(CLI::App& app, CommandRun& out);
void add_collect(CLI::App& app, CommandRun& out);
void add_route(CLI::App& app, CommandRun& out);
/// With --from a recording is judged once instead.
void add_evaluate(CLI::App& app, CommandRun& out);
void add_rule_worker(CLI::App& app, CommandRun& out);

}  // namespace tocsin::app
