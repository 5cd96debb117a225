// tocsin rule-worker: rules in Python over live runs, in a process beside the engine of the others.
#pragma once

#include <string>
#include <vector>

#include "app/cli/serve_command.h"
#include "config/config.h"

namespace tocsin::app {

struct AppConfig;

struct WorkerOptions {
  ServeOptions serve;
  std::string file;
  std::vector<std::string> classes;     // empty: all
  std::vector<std::string> parameters;  // NAME=VALUE
  std::string out;                      // empty: as configured
};

/// Starts the process of each rule in Python once: what keeps one from being used is a warning, as
/// this machine may not be the one that runs it.
void check_hosted(const AppConfig& config, const std::string& file,
                  config::Diagnostics& diagnostics);
/// Until SIGINT or SIGTERM. An exit code.
int rule_worker(const WorkerOptions& options);

}  // namespace tocsin::app
