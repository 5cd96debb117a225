// Whether this process leads routing and delivery: one lease for both
// (docs/decisions/0004-one-active-router.md).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>

#include "core/clock.h"
#include "core/lease.h"
#include "core/log.h"
#include "core/telemetry.h"

namespace tocsin::app {

/// Keeps the lease alive on a thread of its own, so that no slow stage lets it run out. term() may
/// be read from anywhere; it says no as soon as the lease may be somebody else's, whether or not
/// the thread has noticed.
class Leadership {
 public:
  /// Ports outlive it.
  Leadership(std::unique_ptr<core::Lease> lease, const core::Clock& clock, core::Log& log,
             core::Telemetry& telemetry);

  /// step() every half a second until stopped, then gives the lease back. `changed` is called on this
  /// thread when the lease was won or lost, so that who waits for it need not look again and again.
  void run(const std::stop_token& stop, const std::function<void()>& changed);
  /// Takes or renews; blocks at most about `timeout`. True: the lease was won or lost.
  bool step(std::chrono::milliseconds timeout);
  void release();

  /// Grows with each time the lease was won; 0 while it is not certainly ours.
  [[nodiscard]] std::uint64_t term() const noexcept;

 private:
  std::unique_ptr<core::Lease> lease_;
  const core::Clock& clock_;
  core::Log& log_;
  core::Gauge& held_;
  core::Counter& changes_;
  std::uint64_t won_ = 0;
  std::atomic<std::uint64_t> term_{0};
  std::atomic<std::int64_t> valid_until_{0};  // steady ns
};

}  // namespace tocsin::app
