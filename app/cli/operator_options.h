// Commands of whoever is on call: what was told, what did not arrive, where labels lead.
#pragma once

#include <CLI/CLI.hpp>

#include "app/cli/command_run.h"

namespace tocsin::app {

void add_history(CLI::App& app, CommandRun& out);
void add_dlq(CLI::App& app, CommandRun& out);
void add_endpoint(CLI::App& app, CommandRun& out);
void add_breaker(CLI::App& app, CommandRun& out);
void add_routes(CLI::App& app, CommandRun& out);
void add_simulate(CLI::App& app, CommandRun& out);

}  // namespace tocsin::app
