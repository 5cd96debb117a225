// `tocsin verdict`, `tocsin note` and `tocsin pin`, on the command line.
#pragma once

#include <CLI/CLI.hpp>

#include "app/cli/command_run.h"

namespace tocsin::app {

void add_verdict(CLI::App& app, CommandRun& out);
void add_note(CLI::App& app, CommandRun& out);
void add_pin(CLI::App& app, CommandRun& out);

}  // namespace tocsin::app
