#include "collectors/hook/raw/raw_sender.h"

#include <utility>

namespace tocsin::hook {
namespace {

constexpr std::uint64_t kAtOnce = 16ULL << 20;  // bytes of one put(), and of one object
constexpr auto kRawPause = std::chrono::seconds(1);
constexpr auto kRawIdle = std::chrono::seconds(60);

// A topic that is missing may be made meanwhile.
bool may_pass(const core::Error& error) {
  return error.retryable() || error.code == core::Code::not_found;
}

}  // namespace

RawSender::RawSender(RawQueue& queue, OpenRawPlace open, const core::Clock& clock)
    : queue_(queue), open_(std::move(open)), clock_(clock) {}

bool RawSender::over() const {
  const std::int64_t until = until_.load();
  return until != kOpen && clock_.monotonic().count() >= until;
}

void RawSender::close(core::Duration until) {
  until_.store(until.count());
  queue_.wake();
}

void RawSender::run() {
  while (true) {
    const std::vector<RawTensor> tensors = queue_.take(kAtOnce);
    if (!tensors.empty()) {
      deliver(tensors);
    } else if (until_.load() != kOpen) {
      break;
    } else {
      queue_.wait(kRawIdle, false);
    }
  }
  place_.reset();
  open_ = nullptr;
  {
    const core::MutexLock lock(mutex_);
    over_ = true;
  }
  ended_.notify_all();
}

void RawSender::wait_until_over(std::chrono::nanoseconds timeout) {
  const core::MutexLock lock(mutex_);
  ended_.wait_for(mutex_, timeout, [this]() REQUIRES(mutex_) { return over_; });
}

void RawSender::deliver(const std::vector<RawTensor>& tensors) {
  while (!over()) {
    const auto taken = put(tensors);
    if (taken) {
      trouble_.clear();
      queue_.done(tensors);
      return;
    }
    trouble_.set(taken.error().message);
    if (taken.error().code == core::Code::cancelled) break;
    if (!may_pass(taken.error())) {
      queue_.done(tensors, RawSkip::refused);
      return;
    }
    queue_.wait(kRawPause, true);
  }
  queue_.done(tensors, RawSkip::undelivered);
}

core::Status RawSender::put(const std::vector<RawTensor>& tensors) {
  if (place_ == nullptr) {
    auto opened = open_();
    if (!opened) return opened.error();
    place_ = *std::move(opened);
  }
  return place_->put(tensors, [this] { return over(); });
}

}  // namespace tocsin::hook
