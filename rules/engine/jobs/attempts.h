// Whether a frame is followed at all: room for its run, the attempt it belongs to, and whether its
// worker's clock can be believed.
#pragma once

#include <cstdint>

#include "rules/engine/issues/own_issues.h"
#include "rules/engine/jobs/decisions.h"
#include "rules/engine/jobs/ends.h"
#include "rules/engine/partition/context.h"

namespace tocsin::rules {

class Attempts {
 public:
  Attempts(Context& ctx, OwnIssues& own, Ends& ends, Decisions& decisions)
      : ctx_(ctx), own_(own), ends_(ends), decisions_(decisions) {}

  /// nullptr: there is no room for it.
  Run* find_run(const core::FrameHeader& header);
  bool enter(Run& run, const core::FrameView& frame, const core::Lifecycle* body);
  void check_clock(Run& run, std::uint32_t number, const core::FrameHeader& header);

 private:
  bool make_room();
  Launches::Standing standing_of(Run& run, const core::FrameHeader& header,
                                 const ProcessId& process, const core::Lifecycle* body);
  void unwatched(Run& run, const core::FrameHeader& header);

  Context& ctx_;
  OwnIssues& own_;
  Ends& ends_;
  Decisions& decisions_;
};

}  // namespace tocsin::rules
