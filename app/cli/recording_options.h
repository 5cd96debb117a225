// The commands that judge what was recorded, on the command line.
#pragma once

#include <CLI/CLI.hpp>

#include "app/cli/commands.h"

namespace tocsin::app {

void add_replay(CLI::App& app, Invocation& out);
void add_report(CLI::App& app, Invocation& out);
void add_test(CLI::App& app, Invocation& out);

}  // namespace tocsin::app
