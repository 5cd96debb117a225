#include "app/stages/platform_calls.h"

#include <pthread.h>

#include <exception>

namespace tocsin::app {
namespace {

constexpr std::size_t kMostCalls = 8;  // at once

}  // namespace

PlatformCalls::PlatformCalls(std::function<bool()> gate, std::function<void()> on_answer)
    : gate_(std::move(gate)), on_answer_(std::move(on_answer)) {}

PlatformCalls::~PlatformCalls() {
  for (auto& thread : threads_) thread.request_stop();
  threads_.clear();
}

void PlatformCalls::submit(actions::PlatformCall call) {
  bool more = false;
  {
    const core::MutexLock lock(mutex_);
    waiting_.push_back(std::move(call));
    more = waiting_.size() > idle_ && threads_.size() < kMostCalls;
  }
  if (more) {
    threads_.emplace_back([this](const std::stop_token& stop) {
      pthread_setname_np(pthread_self(), "tocsin-platform");
      run(stop);
    });
  }
  wake_.notify_all();
}

std::vector<std::pair<actions::PlatformCall, actions::PlatformAnswer>> PlatformCalls::take() {
  const core::MutexLock lock(mutex_);
  return std::exchange(answers_, {});
}

void PlatformCalls::run(const std::stop_token& stop) {
  while (true) {
    actions::PlatformCall call;
    {
      const core::MutexLock lock(mutex_);
      ++idle_;
      wake_.wait(mutex_, stop, [this]() REQUIRES(mutex_) { return !waiting_.empty(); });
      --idle_;
      if (stop.stop_requested()) return;
      call = std::move(waiting_.front());
      waiting_.pop_front();
    }
    if (!gate_()) continue;
    actions::PlatformAnswer answer;
    try {
      answer = call.platform->carry_out(call.target, call.rung, kBudget);
    } catch (const std::exception& error) {
      answer = {actions::PlatformSeen::unreachable, error.what(), false};
    }
    {
      const core::MutexLock lock(mutex_);
      answers_.emplace_back(std::move(call), std::move(answer));
    }
    on_answer_();
  }
}

}  // namespace tocsin::app
