// `tocsin insights` on the command line.
#pragma once

#include <CLI/CLI.hpp>

#include "app/cli/command_run.h"

namespace tocsin::app {

/// check, stats, rebuild.
void add_insights(CLI::App& app, CommandRun& out);

}  // namespace tocsin::app
