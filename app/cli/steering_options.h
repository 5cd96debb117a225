// The commands by which a person steers runs, on the command line.
#pragma once

#include <CLI/CLI.hpp>

#include "app/cli/command_run.h"

namespace tocsin::app {

void add_stop(CLI::App& app, CommandRun& out);
void add_stops(CLI::App& app, CommandRun& out);
void add_silence(CLI::App& app, CommandRun& out);
void add_send_test(CLI::App& app, CommandRun& out);
/// render.
void add_template(CLI::App& app, CommandRun& out);
void add_capture(CLI::App& app, CommandRun& out);

}  // namespace tocsin::app
