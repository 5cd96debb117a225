#include "collectors/hook/client/handover.h"

#include <utility>

namespace tocsin::hook {

void Handover::ask(Asked request) {
  const core::MutexLock lock(mutex_);
  asked_ = request;
  answered_ = false;
}

bool Handover::wait_for_answer(std::chrono::nanoseconds timeout) {
  const core::MutexLock lock(mutex_);
  changed_.wait_for(mutex_, timeout, [this]() REQUIRES(mutex_) { return answered_; });
  return answered_ && answer_;
}

void Handover::start(int threads) {
  const core::MutexLock lock(mutex_);
  threads_ = threads;
}

void Handover::wait_until_all_left(std::chrono::nanoseconds timeout) {
  const core::MutexLock lock(mutex_);
  changed_.wait_for(mutex_, timeout, [this]() REQUIRES(mutex_) { return threads_ == 0; });
}

void Handover::close() {
  {
    const core::MutexLock lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
}

Handover::Asked Handover::take(std::shared_ptr<core::RecordPublisher> publisher) {
  Asked taken;
  {
    const core::MutexLock lock(mutex_);
    publisher_.swap(publisher);  // the former one goes without the lock
    taken = std::exchange(asked_, Asked{});
  }
  changed_.notify_all();
  return taken;
}

void Handover::answer(bool done) {
  {
    const core::MutexLock lock(mutex_);
    answered_ = true;
    answer_ = done;
  }
  changed_.notify_all();
}

void Handover::wait_until_alone() {
  const core::MutexLock lock(mutex_);
  changed_.wait(mutex_, [this]() REQUIRES(mutex_) { return threads_ == 1; });
  publisher_.reset();
}

std::shared_ptr<core::RecordPublisher> Handover::wait_for_publisher(
    std::chrono::nanoseconds timeout) {
  const core::MutexLock lock(mutex_);
  changed_.wait_for(mutex_, timeout,
                    [this]() REQUIRES(mutex_) { return publisher_ != nullptr || closing_; });
  return closing_ ? nullptr : publisher_;
}

void Handover::leave() {
  {
    const core::MutexLock lock(mutex_);
    --threads_;
  }
  changed_.notify_all();
}

}  // namespace tocsin::hook
