// `tocsin simulate`: recorded events through the router of a configuration, on a clock of their own
// (docs/simulate.md).
#pragma once

#include <string>

#include "core/time.h"

namespace tocsin::app {

struct SimulateOptions {
  std::string config_file;  // empty: $TOCSIN_CONFIG, then ./tocsin.yaml
  std::string out;          // kafka://host:9092 or a directory, before any file
  std::string events;       // a file with one event per line, instead of topics
  std::string since;        // of what is read
  std::string until;
  bool json = false;
  bool decisions = false;  // each look at a group, also when nobody had to be told
  double speed = 0;        // times as fast as it happened; 0: without waiting
  core::Duration after = std::chrono::minutes(10);  // behind the last event
};

/// An exit code; 1: a line is no event; 2: wrong usage; 3: configuration; 4: unreachable. Nothing is sent,
/// and nothing is written.
int simulate_command(const SimulateOptions& options);

}  // namespace tocsin::app
