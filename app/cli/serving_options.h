// The commands that serve until they are told to end, on the command line.
#pragma once

#include <CLI/CLI.hpp>

#include "app/cli/commands.h"

namespace tocsin::app {

/// up, collect, route.
void add_roles(CLI::App& app, Invocation& out);
/// evaluate, with --from a recording is judged once instead.
void add_evaluate(CLI::App& app, Invocation& out);
void add_rule_worker(CLI::App& app, Invocation& out);

}  // namespace tocsin::app
