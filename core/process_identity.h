// Which process a pid means: the kernel's line about one process.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tocsin::core {

/// What /proc/<pid>/stat says of a process (proc(5)). Pid and `start_ticks` together name one
/// process of a boot: a reused pid has another start time. A zombie still has a start time.
struct ProcessStat {
  std::uint64_t pid = 0;
  char state = '\0';  // R, S, D, Z, …
  std::uint64_t parent_pid = 0;
  std::uint64_t user_ticks = 0;  // clock ticks, of which a second has sysconf(_SC_CLK_TCK)
  std::uint64_t system_ticks = 0;
  std::uint64_t threads = 0;
  std::uint64_t start_ticks = 0;  // since boot
  std::uint64_t virtual_bytes = 0;
  std::uint64_t resident_pages = 0;
  /// As waitpid() gives it. The kernel writes 0 for a process that runs and for a reader without
  /// permission. nullopt before Linux 3.5 and in a text that was cut off.
  std::optional<int> wait_status;
};

/// Parses the text of /proc/<pid>/stat. The name may hold blanks, parentheses and newlines; the
/// last ')' ends it. nullopt unless every member up to `resident_pages` is a number: a text that
/// ends inside the start time must not name another process.
std::optional<ProcessStat> parse_process_stat(std::string_view text) noexcept;

}  // namespace tocsin::core
