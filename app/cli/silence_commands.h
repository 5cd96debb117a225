// `tocsin silence`: for a time nobody is told of issues that match (docs/silences.md).
#pragma once

#include <string>
#include <vector>

#include "core/time.h"

namespace tocsin::app {

struct SilenceOptions {
  std::string config_file;  // empty: $TOCSIN_CONFIG, then ./tocsin.yaml
  std::string out;          // kafka://host:9092 or a directory, before any file
  bool json = false;
  bool all = false;                   // list: ended ones too
  std::vector<std::string> matchers;  // add: all of them hold
  std::string run;                    // add: of this run, as which_run.h finds it
  std::string job;                    // add: of this job, or the job of `run`
  core::Duration lasts = std::chrono::hours(1);
  core::Duration begins{};  // add: from now
  std::string comment;
  std::string author;   // add: empty: user and host
  std::string actions;  // add: notify, stop_training; empty: both
  bool dry_run = false;
  std::string id;  // expire: or its beginning
};

// Each returns an exit code; 1: no such run or silence; 2: matchers that are none; 4: unreachable.
int silence_add(const SilenceOptions& options);
int silence_list(const SilenceOptions& options);
int silence_expire(const SilenceOptions& options);

}  // namespace tocsin::app
