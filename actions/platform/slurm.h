// Cancels a job of Slurm by slurmrestd, if it still has the restart count and the start time that the
// run was in (docs/stopping-on-platforms.md).
#pragma once

#include <memory>
#include <string>

#include "actions/platform/platform_http.h"

namespace tocsin::actions {

struct SlurmConfig {
  PlatformPlace place;
  std::string version = "v0.0.41";
  std::string user;     // X-SLURM-USER-NAME
  std::string cluster;  // jobs of others are not ours; empty: of any
  std::string signal;   // first; empty: the job is cancelled at once
};
void read(config::Reader& in, SlurmConfig& cfg);
std::unique_ptr<PlatformStop> make_slurm(const SlurmConfig& cfg, HttpClient* http);

}  // namespace tocsin::actions
