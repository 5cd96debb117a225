// Starts and heartbeats of jobs, and the request to capture what the rules need.
#pragma once

#include <cstdint>

#include "rules/engine/issues/reports.h"
#include "rules/engine/partition/rule_table.h"
#include "rules/engine/partition/turn.h"

namespace tocsin::rules {

class JobBook {
 public:
  JobBook(const EngineOptions& options, EngineStats& stats, const ConfiguredRules& configured,
          Reports& reports)
      : options_(options), stats_(stats), configured_(configured), reports_(reports) {}

  void on_start(const Turn& turn, Run& run, Worker& worker, const core::FrameHeader& header,
                const core::Lifecycle& body);
  /// What the registry holds of a run: at most every second while it changes.
  void heartbeat(const Turn& turn, Run& run, std::int64_t time, bool due);
  /// The hook is asked for what the rules need and the run does not capture.
  void request_capture(const Turn& turn, Run& run, std::int64_t time);

 private:
  const EngineOptions& options_;
  EngineStats& stats_;
  const ConfiguredRules& configured_;
  Reports& reports_;
};

}  // namespace tocsin::rules
