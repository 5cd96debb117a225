// Port between the scheduler of attempts and whoever carries them out: threads in the program, the
// simulated world in tests.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/action.h"
#include "core/notification.h"
#include "core/time.h"

namespace tocsin::actions {

/// A call to make now: action(integration).execute(*notification, number, budget), on any thread.
struct Attempt {
  std::string integration;
  std::uint64_t ticket = 0;
  std::uint32_t number = 1;  // from 1; goes on across restarts
  std::chrono::milliseconds budget{};
  core::WallTime started{};
  std::shared_ptr<const core::Notification> notification;
};

/// What an attempt came to.
struct CallResult {
  Attempt attempt;
  std::optional<core::AttemptOutcome> outcome;  // nullopt: never started, nothing was sent
};

/// Carries attempts out. submit() never blocks; each submitted attempt comes back by take() once.
class Caller {
 public:
  virtual ~Caller() = default;
  virtual void submit(Attempt attempt) = 0;
  /// What came to an end since the last call, in that order.
  virtual std::vector<CallResult> take() = 0;
  /// Attempts submitted and not yet taken.
  [[nodiscard]] virtual std::size_t in_flight() const = 0;
  /// Threads it has now; 0 where calls need none.
  [[nodiscard]] virtual std::size_t threads() const { return 0; }
};

}  // namespace tocsin::actions
