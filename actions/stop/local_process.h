// A process of this machine, held so that a signal can never reach another one that got its number
// (docs/actions/stop_training.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "core/result.h"
#include "core/value.h"

namespace tocsin::actions {

/// What tells one start of one process from all others.
struct ProcessFence {
  int pid = 0;
  std::uint64_t pid_start = 0;  // field 22 of /proc/<pid>/stat: clock ticks since boot
  std::string boot_id;          // /proc/sys/kernel/random/boot_id; empty = not known
  std::string host;             // empty = not known
  friend bool operator==(const ProcessFence&, const ProcessFence&) = default;
};

/// From a map with pid, pid_start, boot_id, host (as in issue.run.ref or command.args.fence);
/// nullopt unless pid and pid_start are there.
std::optional<ProcessFence> process_fence(const core::Value& value);
core::Value fence_value(const ProcessFence& fence);
/// Fence of a running process of this machine; not_found when there is none.
core::Result<ProcessFence> fence_of(int pid, std::string host);

/// Holds a pidfd. Movable; lives on one thread at a time.
class LocalProcess {
 public:
  /// Opens the pidfd first and then compares start time and boot id, so that the number cannot be
  /// reused in between. Errors: not_found (no such process any more: it has ended),
  /// failed_precondition (another process, another boot, another host), permission_denied.
  static core::Result<LocalProcess> open(const ProcessFence& fence, const std::string& this_host);

  LocalProcess(LocalProcess&& other) noexcept;
  LocalProcess& operator=(LocalProcess&& other) noexcept;
  ~LocalProcess();

  /// not_found: it has ended; permission_denied.
  core::Status signal(int number) const;
  /// Waits up to `timeout` (0: only looks) until the process has ended: the proof of a stop.
  [[nodiscard]] bool ended(std::chrono::milliseconds timeout = {}) const;

 private:
  explicit LocalProcess(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

}  // namespace tocsin::actions
