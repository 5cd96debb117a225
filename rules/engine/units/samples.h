// System samples: a node's readings become snapshots, which the rules of system metrics get.
#pragma once

#include <cstdint>

#include "rules/engine/partition/context.h"
#include "rules/engine/units/evaluations.h"

namespace tocsin::rules {

class Samples {
 public:
  Samples(Context& ctx, Evaluations& evaluations) : ctx_(ctx), evaluations_(evaluations) {}

  void on_system(Run& run, std::uint32_t worker, const core::FrameView& frame);
  /// The run is over.
  void flush(Run& run);

 private:
  void close(Run& run, NodeState& node, std::int64_t next);

  Context& ctx_;
  Evaluations& evaluations_;
};

}  // namespace tocsin::rules
