// Whether a frame is followed at all: room for its run, the attempt it belongs to, and whether its
// worker's clock can be believed.
#pragma once

#include <cstdint>

#include "rules/engine/issues/own_issues.h"
#include "rules/engine/jobs/decisions.h"
#include "rules/engine/jobs/ends.h"
#include "rules/engine/partition/partition_table.h"
#include "rules/engine/partition/turn.h"

namespace tocsin::rules {

class Attempts {
 public:
  Attempts(const EngineOptions& options, EngineStats& stats, PartitionTable& partitions,
           OwnIssues& own, Ends& ends, Decisions& decisions)
      : options_(options),
        stats_(stats),
        partitions_(partitions),
        own_(own),
        ends_(ends),
        decisions_(decisions) {}

  /// nullptr: there is no room for it.
  Run* find_run(const Turn& turn, const core::FrameHeader& header);
  bool enter(const Turn& turn, Run& run, const core::FrameView& frame, const core::Lifecycle* body);
  void check_clock(const Turn& turn, Run& run, std::uint32_t number,
                   const core::FrameHeader& header);

 private:
  bool make_room(const Turn& turn);
  Launches::Standing standing_of(const Turn& turn, Run& run, const core::FrameHeader& header,
                                 const ProcessId& process, const core::Lifecycle* body);
  void unwatched(const Turn& turn, Run& run, const core::FrameHeader& header);

  const EngineOptions& options_;
  EngineStats& stats_;
  PartitionTable& partitions_;
  OwnIssues& own_;
  Ends& ends_;
  Decisions& decisions_;
};

}  // namespace tocsin::rules
