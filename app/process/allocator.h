// How the C library's allocator treats what a serving process frees.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>

namespace tocsin::app {

/// Freed memory stays with the process for its next use, up to 64 MiB per heap, in place of going back
/// to the system and being faulted in again: what Kafka's client unpacks is as large as a batch, and
/// comes and goes for as long as there is something to read. Nothing happens without glibc.
void keep_freed_memory() noexcept;

/// A thread other than the first one asks the system for memory page by page, with a call for each:
/// 40 000 of them for the state of 100 000 open issues. After this its next four megabytes are
/// there. Called as often as is convenient: where that much is free it costs next to nothing. Gives
/// where they lie: an address, for nothing holds them. Does nothing before keep_freed_memory().
std::span<std::byte> take_memory_ahead() noexcept;

/// Gives to the system what is freed for good: after a burst, such as a start with many open issues,
/// holes and up to 64 MiB per heap would stay for as long as the process lives.
class FreedMemory {
 public:
  /// Called about once a second with the processor time that the process has used so far. After work
  /// of a second or more, the first quiet second gives back what is free. True: it has been given back.
  bool look(std::chrono::nanoseconds processor_time) noexcept;
  /// The same with this process's own time.
  bool look() noexcept;

 private:
  std::chrono::nanoseconds before_{};
  std::chrono::nanoseconds given_back_at_{};
};

}  // namespace tocsin::app
