// Calls to platforms on threads of their own: one that hangs holds up its own stop and no other.
#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "actions/actions.h"
#include "core/mutex.h"

namespace tocsin::app {

class PlatformCalls final : public actions::PlatformCaller {
 public:
  /// `gate`: may this process act? Asked right before each call. `on_answer`: wakes who takes.
  PlatformCalls(std::function<bool()> gate, std::function<void()> on_answer);
  ~PlatformCalls() override;

  void submit(actions::PlatformCall call) override;
  std::vector<std::pair<actions::PlatformCall, actions::PlatformAnswer>> take() override;

 private:
  void run(const std::stop_token& stop);

  std::function<bool()> gate_;
  std::function<void()> on_answer_;
  core::Mutex mutex_;
  core::StoppableCondVar wake_;
  std::deque<actions::PlatformCall> waiting_ GUARDED_BY(mutex_);
  std::size_t idle_ GUARDED_BY(mutex_) = 0;
  std::vector<std::pair<actions::PlatformCall, actions::PlatformAnswer>> answers_
      GUARDED_BY(mutex_);
  std::vector<std::jthread> threads_;  // made by submit(), on the stage's thread
};

}  // namespace tocsin::app
