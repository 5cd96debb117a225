// Which launcher started this process, and what a stop by its platform needs to know of the job
// (docs/launchers.md).
#pragma once

#include <cstdint>
#include <string>

#include "collectors/hook/identity/variables.h"
#include "core/value.h"

namespace tocsin::hook {

struct Launcher {
  std::string name;  // platform kind: k8s-job, jobset, slurm, …; empty: none
  std::string seed;  // text of the UUIDv5; empty: this launcher names no run
  /// The fence of a stop: what tells this start of the job from every other. Only what is known.
  core::ValueMap ref;
};

/// `opened_seconds`: Unix time at which the client opened. It stands in the reference of platforms
/// that do not tell a process when its job was made: a job that began later is another one.
Launcher find_launcher(const Variables& env, std::int64_t opened_seconds);

}  // namespace tocsin::hook
