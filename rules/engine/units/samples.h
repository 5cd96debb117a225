// System samples: a node's readings become snapshots, which the rules of system metrics get.
#pragma once

#include <cstdint>

#include "rules/engine/partition/turn.h"
#include "rules/engine/units/evaluations.h"

namespace tocsin::rules {

class Samples {
 public:
  Samples(const EngineOptions& options, EngineStats& stats, Evaluations& evaluations)
      : options_(options), stats_(stats), evaluations_(evaluations) {}

  void on_system(const Turn& turn, Run& run, std::uint32_t worker, const core::FrameView& frame);
  /// The run is over.
  void flush(const Turn& turn, Run& run);

 private:
  void close(const Turn& turn, Run& run, NodeState& node, std::int64_t next);

  const EngineOptions& options_;
  EngineStats& stats_;
  Evaluations& evaluations_;
};

}  // namespace tocsin::rules
