// What the caller's thread and the two background threads of a client wait for from each other.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>

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
  std::mutex mutex_;
  std::condition_variable changed_;
  Asked asked_;
  bool answered_ = false;
  bool answer_ = false;
  bool closing_ = false;
  int threads_ = 0;
  std::shared_ptr<core::RecordPublisher> publisher_;  // lent by the sending thread
};

}  // namespace tocsin::hook
