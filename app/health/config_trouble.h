// Why this process's configuration file is not in effect: said by the main thread, which reads the file,
// and heard by who looks after the process.
#pragma once

#include <string>

#include "core/mutex.h"

namespace tocsin::app {

/// From any thread.
class ConfigTrouble {
 public:
  /// A process has one configuration file, and so one of these.
  static ConfigTrouble& of_this_process() {
    static ConfigTrouble one;
    return one;
  }
  /// Empty: the file is in effect.
  void set(std::string why) {
    const core::MutexLock lock(mutex_);
    why_ = std::move(why);
  }
  [[nodiscard]] std::string why() const {
    const core::MutexLock lock(mutex_);
    return why_;
  }

 private:
  mutable core::Mutex mutex_;
  std::string why_ GUARDED_BY(mutex_);
};

}  // namespace tocsin::app
