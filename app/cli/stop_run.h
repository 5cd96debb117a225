// `tocsin stop RUN`: a person stops a run, by the command that rules stop runs with, and sees what
// becomes of it (docs/stopping.md).
#pragma once

#include <string>

#include "actions/actions.h"
#include "core/time.h"

namespace tocsin::app {

struct StopRunOptions {
  std::string config_file;  // empty: $TOCSIN_CONFIG, then ./tocsin.yaml
  std::string out;          // kafka://host:9092 or a directory, before any file
  std::string run;          // a uid or its beginning, a job, or with `job` the run's name
  std::string job;
  std::string reason;
  actions::StopTerms terms;
  core::Duration wait = std::chrono::minutes(2);  // for its end; zero: none
  bool dry_run = false;                           // says what would be asked
  bool json = false;
};

/// 0: the run has stopped, had ended, or (wait zero, dry run) was asked; 1: there is no such run, or
/// the stop came to nothing; 4: broker or journal unreachable; 75: not over within `wait`.
int stop_run(const StopRunOptions& options);

}  // namespace tocsin::app
