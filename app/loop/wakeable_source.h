// The source that a loop reads, and the sleep of the loop's thread: what another thread may end.
#pragma once

#include <chrono>
#include <memory>

#include "core/clock.h"
#include "core/mutex.h"
#include "core/record_source.h"

namespace tocsin::app {

/// wake() may be called from anywhere, the rest by the loop's thread.
class WakeableSource {
 public:
  void set(std::unique_ptr<core::RecordSource> source);
  /// Nothing is there any more: the caller closes it.
  std::unique_ptr<core::RecordSource> take();

  explicit operator bool() const noexcept { return source_ != nullptr; }
  core::RecordSource* operator->() const noexcept { return source_.get(); }
  core::RecordSource& operator*() const noexcept { return *source_; }

  /// Until `until` (steady), at most `longest`, and no longer than until wake().
  void pause(core::Clock& clock, core::Duration until, std::chrono::milliseconds longest);
  /// Ends a pause, or the next one, and a poll.
  void wake();

 private:
  std::unique_ptr<core::RecordSource> source_;  // of the loop's thread
  core::Mutex mutex_;
  core::CondVar waked_;
  bool wake_asked_ GUARDED_BY(mutex_) = false;
  core::RecordSource* to_wake_ GUARDED_BY(mutex_) = nullptr;  // source_, for other threads
};

}  // namespace tocsin::app
