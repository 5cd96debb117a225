#include "app/loop/leadership.h"

#include <utility>

#include "core/mutex.h"

namespace tocsin::app {

using namespace std::chrono_literals;

Leadership::Leadership(std::unique_ptr<core::Lease> lease, const core::Clock& clock, core::Log& log,
                       core::Telemetry& telemetry)
    : lease_(std::move(lease)),
      clock_(clock),
      log_(log),
      held_(telemetry.gauge("tocsin_router_lease_held", "this process leads routing and delivery")),
      changes_(telemetry.counter("tocsin_router_lease_changes_total",
                                 "times the lease was won or given up")) {}

void Leadership::run(const std::stop_token& stop, const std::function<void()>& changed) {
  core::Mutex quiet;
  core::StoppableCondVar wake;
  while (!stop.stop_requested()) {
    if (step(1s)) changed();
    const core::MutexLock lock(quiet);
    wake.wait_for(quiet, stop, term() == 0 ? 100ms : 500ms, [] { return false; });
  }
  release();
}

bool Leadership::step(std::chrono::milliseconds timeout) {
  const core::Duration now = clock_.monotonic();
  // Once it ran out somebody else may have led in between, however soon it is ours again.
  if (now.count() >= valid_until_.load()) term_ = 0;
  if (const auto status = lease_->step(now, timeout); !status) {
    log_.warn("lease_not_renewed", {{"error", status.error().message}});
  }
  const auto until = lease_->valid_until();
  const bool leads = until && *until > clock_.monotonic();
  const bool led = term_.load() != 0;
  if (leads) valid_until_ = until->count();
  if (leads == led) return false;
  term_ = leads ? ++won_ : 0;
  held_.set(leads ? 1 : 0);
  changes_.add();
  log_.info(leads ? "lease_won" : "lease_lost", {{"term", won_}});
  return true;
}

void Leadership::release() {
  term_ = 0;
  held_.set(0);
  lease_->release();
}

std::uint64_t Leadership::term() const noexcept {
  const std::uint64_t term = term_.load();
  return clock_.monotonic().count() < valid_until_.load() ? term : 0;
}

}  // namespace tocsin::app
