// Memory that is there before a thread needs it.
#pragma once

#include <cstddef>
#include <span>
#include <stop_token>
#include <thread>

#include "core/mutex.h"

namespace tocsin::app {

/// For a thread that reads a large state in one go. The system clears each new page when it is first
/// used: a tenth of the processor time of such a reading, near half where a virtual machine has to get
/// the memory first. Here a second thread has that done, some megabytes ahead of the reader. A state
/// that is read in no time starts no thread. Does nothing before keep_freed_memory(), nor where the
/// system knows no MADV_POPULATE_WRITE (before Linux 5.14).
class MemoryAhead {
 public:
  /// The calling thread is about to keep what it makes of `bytes` that it has read. Takes memory once
  /// for each 256 KiB of them.
  void reading(std::size_t bytes);
  /// Takes memory now, and has it cleared in the background.
  void take();
  /// Bytes that have been cleared ahead so far. Of any thread.
  [[nodiscard]] std::size_t cleared();

 private:
  void clear_what_is_taken(const std::stop_token& stop);

  std::size_t read_ = 0;
  std::size_t taken_ = 0;      // how often
  std::span<std::byte> last_;  // what was taken last: an address, others may have the memory by now
  bool no_thread_ = false;     // none was to be had
  core::Mutex mutex_;
  core::StoppableCondVar changed_;
  std::span<std::byte> wanted_ GUARDED_BY(mutex_);
  std::size_t cleared_ GUARDED_BY(mutex_) = 0;
  std::jthread thread_;  // last: it uses all of these
};

}  // namespace tocsin::app
