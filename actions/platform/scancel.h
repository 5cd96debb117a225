// Cancels a job of Slurm by the programs scancel and squeue of this machine, if it still has the restart
// count and the start time that the run was in (docs/stopping-on-platforms.md).
#pragma once

#include <memory>
#include <string>

#include "actions/platform/fixed_program.h"
#include "actions/platform/platform_stop.h"
#include "config/config.h"

namespace tocsin::actions {

struct ScancelConfig {
  std::string scancel = "/usr/bin/scancel";
  std::string squeue = "/usr/bin/squeue";
  std::string conf;     // SLURM_CONF
  std::string cluster;  // jobs of others are not ours; empty: of any
  std::string signal;   // first; empty: the job is cancelled at once
  core::Duration timeout = std::chrono::seconds(5);
};
void read(config::Reader& in, ScancelConfig& cfg);
/// `program`: null: the programs of this machine.
std::unique_ptr<PlatformStop> make_scancel(const ScancelConfig& cfg, core::Clock& clock,
                                           std::unique_ptr<FixedProgram> program);

}  // namespace tocsin::actions
