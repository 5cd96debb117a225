#include "app/loop/loop_readiness.h"

namespace tocsin::app {

void LoopReadiness::become_ready() {
  if (ready_) return;
  {
    const core::MutexLock lock(mutex_);
    trouble_.clear();
  }
  ready_ = true;
}

void LoopReadiness::stumble(std::string_view doing, const core::Error& error) {
  ready_ = false;
  const core::MutexLock lock(mutex_);
  trouble_ = stage_ + " stands still, " + std::string(doing) + ": " + error.message;
}

std::string LoopReadiness::trouble() const {
  const core::MutexLock lock(mutex_);
  return trouble_;
}

}  // namespace tocsin::app
