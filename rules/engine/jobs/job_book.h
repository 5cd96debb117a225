// Starts and heartbeats of jobs, and the request to capture what the rules need.
#pragma once

#include <cstdint>

#include "rules/engine/issues/reports.h"
#include "rules/engine/partition/context.h"

namespace tocsin::rules {

class JobBook {
 public:
  JobBook(Context& ctx, Reports& reports) : ctx_(ctx), reports_(reports) {}

  void on_start(Run& run, Worker& worker, const core::FrameHeader& header,
                const core::Lifecycle& body);
  /// What the registry holds of a run: at most every second while it changes.
  void heartbeat(Run& run, std::int64_t time, bool due);
  /// The hook is asked for what the rules need and the run does not capture.
  void request_capture(Run& run, std::int64_t time);

 private:
  Context& ctx_;
  Reports& reports_;
};

}  // namespace tocsin::rules
