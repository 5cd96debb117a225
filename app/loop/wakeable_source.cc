#include "app/loop/wakeable_source.h"

#include <algorithm>
#include <utility>

namespace tocsin::app {

void WakeableSource::set(std::unique_ptr<core::RecordSource> source) {
  {
    const core::MutexLock lock(mutex_);
    to_wake_ = source.get();
  }
  source_ = std::move(source);
}

std::unique_ptr<core::RecordSource> WakeableSource::take() {
  const core::MutexLock lock(mutex_);
  to_wake_ = nullptr;
  return std::move(source_);
}

void WakeableSource::pause(core::Clock& clock, core::Duration until,
                           std::chrono::milliseconds longest) {
  const core::Duration left = std::min<core::Duration>(until - clock.monotonic(), longest);
  const core::MutexLock lock(mutex_);
  if (left.count() > 0)
    waked_.wait_for(mutex_, left, [this]() REQUIRES(mutex_) { return wake_asked_; });
  wake_asked_ = false;
}

void WakeableSource::wake() {
  const core::MutexLock lock(mutex_);
  wake_asked_ = true;
  waked_.notify_all();
  if (to_wake_ != nullptr) to_wake_->wake();
}

}  // namespace tocsin::app
