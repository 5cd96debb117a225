// From the queue of raw tensors to their destination, on a thread of its own that begins with the
// first of them: nothing of it can delay training or telemetry.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collectors/hook/raw/raw_place.h"
#include "collectors/hook/raw/raw_queue.h"
#include "collectors/hook/trouble.h"
#include "core/clock.h"
#include "core/mutex.h"

namespace tocsin::hook {

/// Opens the destination; called again until it works. May block.
using OpenRawPlace = std::function<core::Result<std::unique_ptr<RawPlace>>()>;

class RawSender {
 public:
  /// Borrows the queue and the clock.
  RawSender(RawQueue& queue, OpenRawPlace open, const core::Clock& clock);

  /// The thread's body; ends once close() was called and nothing waits, or its time is over.
  void run();
  /// No more comes; run() may go on until then (monotonic).
  void close(core::Duration until);
  /// run() has returned what it had opened, or the time is over.
  void wait_until_over(std::chrono::nanoseconds timeout);
  [[nodiscard]] std::string trouble() const { return trouble_.text(); }

 private:
  void deliver(const std::vector<RawTensor>& tensors);
  core::Status put(const std::vector<RawTensor>& tensors);
  [[nodiscard]] bool over() const;

  static constexpr std::int64_t kOpen = -1;

  RawQueue& queue_;
  OpenRawPlace open_;
  const core::Clock& clock_;
  Trouble trouble_;
  std::unique_ptr<RawPlace> place_;
  std::atomic<std::int64_t> until_{kOpen};  // monotonic ns, once closed
  core::Mutex mutex_;
  core::CondVar ended_;
  bool over_ GUARDED_BY(mutex_) = false;
};

}  // namespace tocsin::hook
