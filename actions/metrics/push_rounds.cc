#include "actions/metrics/push_rounds.h"

#include <chrono>
#include <stop_token>
#include <thread>
#include <utility>

#include "core/mutex.h"
#include "core/signals_blocked.h"

namespace tocsin::actions {

struct PushRounds::Impl {
  explicit Impl(std::function<void()> called) : turn(std::move(called)) {
    const core::SignalsBlocked blocked;
    thread = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }

  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      turn();
      const core::MutexLock lock(mutex);
      wake.wait_for(mutex, stop, std::chrono::seconds(1), [] { return false; });
    }
  }

  std::function<void()> turn;
  core::Mutex mutex;
  core::StoppableCondVar wake;  // only a stop ends the wait early
  std::jthread thread;          // last: ends before what it uses
};

PushRounds::PushRounds(std::function<void()> turn)
    : impl_(std::make_unique<Impl>(std::move(turn))) {}
PushRounds::~PushRounds() = default;

}  // namespace tocsin::actions
