// How far behind a loop is: tocsin_<part>_changelog_lag_seconds{stage="…"} of what it writes, and
// tocsin_<part>_global_table_lag_seconds{stage="…"} of the topics that it reads whole.
#pragma once

#include <optional>

#include "app/loop/stage.h"
#include "core/telemetry.h"
#include "core/time.h"

namespace tocsin::app {

class LagProbe {
 public:
  /// A stage without state has no changelog; one of a group, or that reads only what comes, no table.
  LagProbe(core::Telemetry& sink, const StageWiring& wiring);
  /// `waits`: since when (steady) the oldest change waits to be durable; nullopt: nothing waits.
  void look_at_changelog(std::optional<core::Duration> waits, core::Duration now);
  /// `read_until`: all that was published before (steady) has been read; nullopt: nothing is ours.
  void look_at_tables(std::optional<core::Duration> read_until, core::Duration now);

 private:
  core::Gauge* changelog_ = nullptr;
  core::Gauge* tables_ = nullptr;
};

}  // namespace tocsin::app
