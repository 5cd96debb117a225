// What a loop measures about itself: tocsin_<part>_…{stage="…"}.
#pragma once

#include <string>

#include "app/loop/stage.h"
#include "core/telemetry.h"

namespace tocsin::app {

struct LoopProbe {
  LoopProbe(core::Telemetry& sink, const StageWiring& wiring);
  /// One record was written to the dlq.
  void dead_letter(const std::string& reason);

  core::Telemetry& sink;
  const std::string part;
  const std::string stage;
  core::Counter& commits;
  core::Counter& failures;
  core::Counter& restarts;
  core::Counter& faults;
  core::Counter& overruns;
  core::Histogram& commit_seconds;
  core::Histogram& restore_seconds;
  core::Gauge& partitions;
  core::Gauge& behind;
};

}  // namespace tocsin::app
