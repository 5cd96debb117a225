// Issues and runs as the router knows them, for listings and state series.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/issue.h"
#include "core/run_told.h"
#include "core/time.h"

namespace tocsin::routing {

/// An issue as the router knows it, for state series and listings.
struct IssueView {
  core::Issue issue;
  std::string_view issue_key;  // borrowed for the call
  bool firing = false;
  std::uint64_t episodes = 0;  // since it was first seen
  core::WallTime last_transition{};
};

/// Of an issue that fires, what costs nothing to tell. Borrowed for the call.
struct FiringView {
  std::string_view issue_key;
  std::uint64_t episode = 0;
  core::RunUid run;
  std::uint32_t attempt = 0;
  std::string_view rule;
  bool shadow = false;
};

/// What is known of a run: its newest attempt, by its own job events or by issues, whichever named
/// it first.
struct RunView {
  std::uint32_t attempt = 0;                  // 0: no job event or issue has named one
  std::map<std::string, std::string> launch;  // JobEvent::launch; empty: not heard yet
  std::optional<core::WallTime> ended_at;     // of this attempt
  bool lost = false;                          // no sign of life for job_lost_after
  std::string outcome;                        // of its end
  std::optional<std::int64_t> step;           // newest train step, at step_time
  std::optional<double> step_seconds;         // median of one
  core::WallTime step_time{};
  std::string job;
  std::string report;                  // where its page lies
  std::optional<core::StopTold> stop;  // that this attempt was asked for
};

}  // namespace tocsin::routing
