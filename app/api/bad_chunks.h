// Chunks of curves.db that requests could not decode, until the one thread that writes the file drops them.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "core/mutex.h"
#include "insights/insights.h"

namespace tocsin::app {

/// Thread-safe.
class BadChunks {
 public:
  static constexpr std::size_t kMost = 1000;  // that wait; what is beyond is met again

  void met(const insights::BadChunk& chunk) {
    const core::MutexLock lock(mutex_);
    if (waiting_.size() < kMost) waiting_.push_back(chunk);
  }
  std::vector<insights::BadChunk> take() {
    const core::MutexLock lock(mutex_);
    return std::exchange(waiting_, {});
  }

 private:
  core::Mutex mutex_;
  std::vector<insights::BadChunk> waiting_ GUARDED_BY(mutex_);
};

}  // namespace tocsin::app
