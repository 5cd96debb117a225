// The commands around a configuration, a journal and a training command, on the command line.
#pragma once

#include <CLI/CLI.hpp>

#include "app/cli/commands.h"

namespace tocsin::app {

/// init, check, topics, rules, schema, version.
void add_configuration_tools(CLI::App& app, Invocation& out);
/// journal, run, sync.
void add_record_tools(CLI::App& app, Invocation& out);
/// completion; `app` must outlive the run.
void add_completion(CLI::App& app, Invocation& out);

}  // namespace tocsin::app
