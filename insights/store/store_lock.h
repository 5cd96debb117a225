// One process writes a store.
#pragma once

#include <memory>
#include <string>

#include "core/result.h"

namespace tocsin::insights {

/// Another process's writer would take the positions for its own. The system lets go of the lock
/// when the process ends, however it ends.
class StoreLock {
 public:
  /// Of the store at `path`. unavailable: another process has it.
  static core::Result<std::unique_ptr<StoreLock>> take(const std::string& path);
  ~StoreLock();
  StoreLock(const StoreLock&) = delete;
  StoreLock& operator=(const StoreLock&) = delete;

 private:
  explicit StoreLock(int file) : file_(file) {}
  int file_;
};

}  // namespace tocsin::insights
