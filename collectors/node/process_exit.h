// How a process ended that is held by a descriptor: its exit status as waitpid() gives it.
#pragma once

#include <cstdint>
#include <optional>

#include "core/process_identity.h"

namespace tocsin::collectors {

/// Which process a descriptor (pidfd) stands for; its numbers tell a reused pid.
struct EndedProcess {
  int descriptor = -1;
  std::int64_t pid = 0;
  std::int64_t pid_start = 0;
};

/// The status of a process that has ended; it stays to be waited for. Of one that is no child only
/// that it ended by itself: who is killed from outside is lost, whoever may know the signal. nullopt
/// also where nobody tells: a process of another user, or one that its parent has waited for on a
/// kernel before 6.15.
std::optional<int> wait_status(const EndedProcess& process);

/// nullopt: there is no such process.
std::optional<core::ProcessStat> read_process_stat(std::int64_t pid);

}  // namespace tocsin::collectors
