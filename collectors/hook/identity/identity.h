// Which run, attempt and rank this process is (docs/wire.md): decided from what the launcher put
// into the environment, never by talking to other ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/identity.h"
#include "core/result.h"
#include "core/value.h"

namespace tocsin::hook {

/// What the caller said; empty, -1 and 0 mean "find out".
struct IdentityOptions {
  std::string run;
  std::string job;
  std::string worker;
  std::int64_t rank = -1;
  std::int64_t world_size = -1;
  std::uint32_t attempt = 0;
};

/// What is known about the process; a plain struct so that tests make up machines and launchers.
struct ProcessFacts {
  std::function<std::optional<std::string>(const std::string&)> environment;
  std::string boot_id;
  std::string host;
  std::string script;  // default of `job`
  std::int64_t pid = 0;
  std::int64_t start_ticks = 0;    // since boot, from /proc: tells a reused pid
  std::int64_t pid_namespace = 0;  // inode; a pid means something only together with it
  std::int64_t parent_pid = 0;
  std::int64_t parent_start_ticks = 0;
  std::int64_t opened = 0;          // now, ns since boot (CLOCK_BOOTTIME)
  std::int64_t opened_seconds = 0;  // now, Unix time
};
/// Reads /proc and the environment of this process.
ProcessFacts this_process();

struct Identity {
  core::RunUid run;
  std::string job;
  std::uint32_t attempt = 1;
  std::uint32_t rank = 0;
  std::uint32_t world_size = 1;
  std::string worker;
  std::string host;  // also the node's name
  std::string boot_id;
  std::int64_t opened = 0;         // ns since boot at which the client opened
  std::string launcher;            // "torchelastic", "slurm", …; empty: none
  std::string launch;              // what the ranks of this launch share; empty: nothing
  std::string platform = "local";  // platform.kind of the start record
  core::Value platform_ref;        // platform.ref: what a stop by the platform needs
  std::int64_t pid = 0;
  std::int64_t pid_start = 0;
};

/// Makes job, worker and host fit (core/limits.h), which the run's uid does not depend on any more. What was changed, for
/// people.
std::vector<std::string> bound(Identity& identity);

/// Error: failed_precondition when several hosts take part and nothing names the run.
core::Result<Identity> derive_identity(const IdentityOptions& options, const ProcessFacts& facts);

}  // namespace tocsin::hook
