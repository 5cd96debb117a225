#include "app/api/store_refill.h"

#include <chrono>
#include <memory>

#include "app/api/curves_feed.h"
#include "app/api/insights_feed.h"
#include "app/api/run_pins.h"
#include "app/api/stream_hub.h"
#include "core/mutex.h"
#include "core/system_clock.h"

namespace tocsin::app {

using namespace std::chrono_literals;

namespace {

constexpr auto kLookEvery = 200ms;

}  // namespace

core::Status refill_stores(AppConfig config, const std::string& path,
                           core::FunctionRef<void()> tell) {
  const core::SystemClock clock;
  core::NullLog log;
  core::NullTelemetry telemetry;
  config.insights.enabled = true;
  config.insights.path = path;
  config.insights.from_beginning = true;
  auto transport = ingest::Transport::open(config.transport, config.topics, log, telemetry);
  if (!transport) return transport.error();
  const auto hub = StreamHub::create(clock);
  RunPins pins;
  const InsightsFeed events(config, **transport, clock, log, *hub, pins, telemetry);
  const CurvesFeed curves(config, **transport, clock, log, *hub, pins, telemetry);
  core::Mutex quiet;
  core::StoppableCondVar wake;
  while (!events.current() || !curves.current()) {
    for (const std::string& trouble : {events.trouble(), curves.trouble()}) {
      if (!trouble.empty()) return core::unavailable(trouble);
    }
    {
      const core::MutexLock lock(quiet);
      wake.wait_for(quiet, std::stop_token(), kLookEvery, [] { return false; });
    }
    tell();
  }
  return core::ok();
}

}  // namespace tocsin::app
