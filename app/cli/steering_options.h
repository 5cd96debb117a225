// The commands by which a person steers runs, on the command line.
#pragma once

#include <CLI/CLI.hpp>

#include "app/cli/commands.h"

namespace tocsin::app {

void add_stop(CLI::App& app, Invocation& out);
void add_silence(CLI::App& app, Invocation& out);
void add_capture(CLI::App& app, Invocation& out);

}  // namespace tocsin::app
