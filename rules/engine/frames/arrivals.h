// Whose frame it is, whether it was handled before, and that the worker goes on.
#pragma once

#include <cstdint>

#include "rules/engine/frames/intake.h"
#include "rules/engine/issues/issue_book.h"
#include "rules/engine/partition/turn.h"

namespace tocsin::rules {

class Arrivals {
 public:
  Arrivals(const EngineOptions& options, EngineStats& stats, IssueBook& book, Intake& intake)
      : options_(options), stats_(stats), book_(book), intake_(intake) {}

  /// kNoRoster: there is no room for it.
  std::uint32_t find_worker(const Turn& turn, Run& run, const core::FrameHeader& header);
  /// False: a duplicate, or of an earlier process.
  bool accept(const Turn& turn, Run& run, Worker& worker, const core::FrameHeader& header);
  void progress(const Turn& turn, Run& run, Worker& worker, const core::FrameHeader& header);
  /// The loop's own word that it goes on, and will be heard of again within so many seconds.
  void promise(const Turn& turn, Run& run, Worker& worker, const core::FrameHeader& header,
               double seconds);

 private:
  void end_silences(const Turn& turn, Run& run, Worker& worker, const core::FrameHeader& header,
                    std::int64_t last, bool promised);

  const EngineOptions& options_;
  EngineStats& stats_;
  IssueBook& book_;
  Intake& intake_;
};

}  // namespace tocsin::rules
