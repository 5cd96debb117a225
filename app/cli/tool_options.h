// The commands around a configuration, a journal and a training command, on the command line.
#pragma once

#include <CLI/CLI.hpp>

#include "app/cli/command_run.h"

namespace tocsin::app {

void add_init(CLI::App& app, CommandRun& out);
void add_check(CLI::App& app, CommandRun& out);
/// diff.
void add_config(CLI::App& app, CommandRun& out);
/// plan, apply, export.
void add_topics(CLI::App& app, CommandRun& out);
/// list, describe.
void add_rules(CLI::App& app, CommandRun& out);
void add_schema(CLI::App& app, CommandRun& out);
void add_version(CLI::App& app, CommandRun& out);
/// check, salvage.
void add_journal(CLI::App& app, CommandRun& out);
void add_run(CLI::App& app, CommandRun& out);
void add_sync(CLI::App& app, CommandRun& out);
/// `app` must outlive the run.
void add_completion(CLI::App& app, CommandRun& out);

}  // namespace tocsin::app
