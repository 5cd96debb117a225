// Actions with their real adapters and the real time, against servers on loopback.
#pragma once

#include <chrono>
#include <functional>
#include <utility>

#include "tests/integration/child_program.h"
#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions::testing_support {

class SteadyClock final : public core::Clock {
 public:
  [[nodiscard]] core::WallTime now() const override {
    return std::chrono::time_point_cast<core::Duration>(std::chrono::system_clock::now());
  }
  [[nodiscard]] core::Duration monotonic() const override {
    return std::chrono::steady_clock::now().time_since_epoch();
  }
};

// The real adapters instead of the fakes, and the real time.
struct RealBench : Workbench {
  RealBench() {
    environment.http = nullptr;
    environment.mailer = nullptr;
    environment.mqtt = nullptr;
    environment.clock = &real_clock;
  }
  SteadyClock real_clock;
};

inline core::Duration elapsed_of(const std::function<void()>& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::steady_clock::now() - begin;
}

inline core::AttemptOutcome deliver_within(core::Action& action, core::Notification notification,
                                           std::chrono::milliseconds budget) {
  notification.rendered = *action.render(notification);
  return action.execute(notification, 1, budget);
}

}  // namespace tocsin::actions::testing_support
