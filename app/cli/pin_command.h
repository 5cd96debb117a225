// `tocsin pin`: a run is kept, whatever its age and the room it takes (docs/stores.md).
#pragma once

#include <string>

namespace tocsin::app {

struct PinOptions {
  std::string config_file;  // empty: $TOCSIN_CONFIG, then ./tocsin.yaml
  std::string out;          // kafka://host:9092 or a directory, before any file
  std::string run;          // uid or its beginning, a job, or with `job` a run's name
  std::string job;
  std::string author;  // empty: user and host
  bool take_back = false;
  bool dry_run = false;
  bool json = false;
};

// 0: it stands so; 1: no such run, or several, or nothing to take back; 2: usage; 4: unreachable.
int pin_command(const PinOptions& options);

}  // namespace tocsin::app
