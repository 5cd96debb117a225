// Issues as they were at a time, for a list: what the store has of a run is read once for all its issues.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/time.h"
#include "core/value.h"
#include "insights/insights.h"

namespace tocsin::app {

/// Made for one request.
class PastIssues {
 public:
  /// `store` outlives it; its failure() says whether everything could be read.
  PastIssues(insights::EventReader& store, core::Duration resolve_timeout, core::WallTime at)
      : store_(store), resolve_timeout_(resolve_timeout), at_(at) {}

  /// As GET /api/v1/issues/{key}/{episode}?at=… has it in `issue`; null: it had not been reported.
  core::Value issue(const insights::IssueLine& line);
  /// Whether it was a first sign, by what had been reported of its run.
  bool first_sign(const insights::IssueLine& line);

 private:
  struct OfRun {
    std::map<std::pair<std::string, std::int64_t>, insights::IssueLine> lines;  // as they were
    std::vector<insights::KeptRecord> attempts;
    std::map<std::string, std::vector<insights::KeptRecord>> reports;  // by key
  };
  const OfRun& run_of(const insights::IssueLine& line);
  [[nodiscard]] OfRun read(const insights::IssueLine& line);
  void sort_in(insights::KeptRecord kept, OfRun& out);

  insights::EventReader& store_;
  const core::Duration resolve_timeout_;
  const core::WallTime at_;
  std::map<std::string, OfRun> runs_;
  std::size_t bytes_ = 0;  // of the records in them
};

}  // namespace tocsin::app
