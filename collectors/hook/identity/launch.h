// Which launch this process belongs to (docs/wire.md): what all ranks of one start of a run
// share, without one rank asking another. The engine settles attempts by it
// (docs/launches.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "collectors/hook/identity/variables.h"

namespace tocsin::hook {

/// What a launch key is made of beside the environment.
struct LaunchFacts {
  std::string_view launcher_seed;  // names the launcher's job ("slurm:c1/77"); empty: none
  std::string_view boot_id;
  std::string_view local;  // what its processes on one host share: "<parent pid>/<its start>"
  std::uint32_t given_attempt = 0;  // by the caller; 0: ask the environment
  bool one_host = false;            // all ranks run here
};

/// The key; empty where the ranks share nothing that can be seen. A key may come again (torchrun
/// with a fixed port and no id), so it never stands alone.
std::string launch_key(const LaunchFacts& facts, const Variables& env);

/// True when `mark` ("<first 8 digits of a boot id>/<ns since boot>", JobEvent::launch and
/// Command::launch) was written on the boot `boot_id` for a worker that opened at `opened` or
/// later: what is bound to such a mark may concern the worker that opened then.
bool marks_at_least(std::string_view mark, std::string_view boot_id, std::int64_t opened);

}  // namespace tocsin::hook
