// Rules of silence: of a run, or of one worker while the others go on.
#pragma once

#include <cstdint>
#include <vector>

#include "rules/engine/issues/issue_book.h"
#include "rules/engine/partition/turn.h"

namespace tocsin::rules {

class SilenceWatch {
 public:
  explicit SilenceWatch(IssueBook& book) : book_(book) {}

  /// Adds what is due at `time`.
  void due(const Turn& turn, Run& run, std::int64_t time, std::vector<Entry>& due);
  void count(const Turn& turn, Run& run, const RuleTable::Bound<ClockProgram>& clock, bool at_end);
  /// A silence that was found, or is found again in a replay.
  void fire(const Turn& turn, Run& run, const Entry& entry);

 private:
  IssueBook& book_;
};

}  // namespace tocsin::rules
