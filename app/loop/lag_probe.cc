#include "app/loop/lag_probe.h"

#include <algorithm>
#include <chrono>
#include <string>

namespace tocsin::app {
namespace {

void set_lag(core::Gauge* gauge, std::optional<core::Duration> since, core::Duration now) {
  if (gauge == nullptr) return;
  const core::Duration lag = since ? std::max(now - *since, core::Duration{0}) : core::Duration{0};
  gauge->set(std::chrono::duration<double>(lag).count());
}

}  // namespace

LagProbe::LagProbe(core::Telemetry& sink, const StageWiring& wiring) {
  const std::string part = "tocsin_" + wiring.part + "_";
  if (wiring.state != StateScope::none) {
    changelog_ = &sink.gauge(part + "changelog_lag_seconds",
                             "how long the oldest change of state has waited to be durable",
                             {{"stage", wiring.name}});
  }
  if (wiring.group.empty() && !wiring.newest_only) {
    tables_ = &sink.gauge(part + "global_table_lag_seconds",
                          "how long ago the topics that a stage keeps whole were read to their end",
                          {{"stage", wiring.name}});
  }
}

void LagProbe::look_at_changelog(std::optional<core::Duration> waits, core::Duration now) {
  set_lag(changelog_, waits, now);
}

void LagProbe::look_at_tables(std::optional<core::Duration> read_until, core::Duration now) {
  set_lag(tables_, read_until, now);
}

}  // namespace tocsin::app
