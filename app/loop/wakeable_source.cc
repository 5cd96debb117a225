#include "app/loop/wakeable_source.h"

#include <algorithm>
#include <utility>

namespace tocsin::app {

void WakeableSource::set(std::unique_ptr<core::RecordSource> source) {
  const std::lock_guard lock(mutex_);
  source_ = std::move(source);
}

std::unique_ptr<core::RecordSource> WakeableSource::take() {
  const std::lock_guard lock(mutex_);
  return std::move(source_);
}

void WakeableSource::pause(core::Clock& clock, core::Duration until,
                           std::chrono::milliseconds longest) {
  const core::Duration left = std::min<core::Duration>(until - clock.monotonic(), longest);
  std::unique_lock lock(mutex_);
  if (left.count() > 0) waked_.wait_for(lock, left, [this] { return wake_asked_; });
  wake_asked_ = false;
}

void WakeableSource::wake() {
  const std::lock_guard lock(mutex_);
  wake_asked_ = true;
  waked_.notify_all();
  if (source_) source_->wake();
}

}  // namespace tocsin::app
