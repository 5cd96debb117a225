// What the caller's thread and the two background threads of a client wait for from each other.
#pragma once

#include <chrono>
#include <memory>

#include "core/mutex.h"
#include "core/record_publisher.h"
#include "core/time.h"

namespace tocsin::hook {

/// Thread-safe.
class Handover {
 public:
  enum class Request { none, flush, close };
  struct Asked {
    Request what = Request::none;
    core::Duration until{0};  // monotonic
  };

  // ---- the caller
  /// Leaves a request for the sending thread.
  void ask(Asked request);
  /// What the sending thread says of it; false when it says nothing in time.
  bool wait_for_answer(std::chrono::nanoseconds timeout);
  /// So many background threads begin.
  void start(int threads);
  /// Until all of them have left, or the time is over.
  void wait_until_all_left(std::chrono::nanoseconds timeout);
  /// The client closes: nobody waits for the publisher any longer.
  void close();

  // ---- the sending thread
  /// Takes the request, if there is one, and lends the publisher to the command thread.
  Asked take(std::shared_ptr<core::RecordPublisher> publisher);
  void answer(bool done);
  /// The command thread may be using the publisher, so it leaves first.
  void wait_until_alone();

  // ---- the command thread
  /// Null: none was opened in time, or the client closes.
  std::shared_ptr<core::RecordPublisher> wait_for_publisher(std::chrono::nanoseconds timeout);

  // ---- both
  void leave();

 private:
  core::Mutex mutex_;
  core::CondVar changed_;
  Asked asked_ GUARDED_BY(mutex_);
  bool answered_ GUARDED_BY(mutex_) = false;
  bool answer_ GUARDED_BY(mutex_) = false;
  bool closing_ GUARDED_BY(mutex_) = false;
  int threads_ GUARDED_BY(mutex_) = 0;
  std::shared_ptr<core::RecordPublisher> publisher_
      GUARDED_BY(mutex_);  // lent by the sending thread
};

}  // namespace tocsin::hook
