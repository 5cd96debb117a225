// Runs that write to a journal which no engine reads: nobody would ever be told of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "app/view/topic_view.h"
#include "core/identity.h"
#include "core/time.h"
#include "ingest/ingest.h"

namespace tocsin::app {

/// What the telemetry of the last minutes says of a run.
struct UnknownRun {
  std::string job;  // empty: it was not said in these minutes
  std::int64_t step = -1;
  core::WallTime heard{};
  bool over = false;  // its last word was an end
};

struct Unjudged {
  bool no_engine = false;
  std::map<core::RunUid, UnknownRun> runs;  // that the registry does not have
  std::size_t going_on = 0;                 // of those, and of the known ones: heard of just now
  /// A training goes on, and nobody judges it.
  [[nodiscard]] bool alarming() const noexcept { return no_engine && going_on > 0; }
};

/// Of a journal. Nothing where an engine reads it; else the telemetry of the last minutes is looked through.
Unjudged find_unjudged(ingest::Transport& transport, const std::string& journal,
                       const std::string& prefix, const TopicView& view, core::WallTime now);
/// Some lines for people; empty: all is judged.
std::string unjudged_text(const Unjudged& unjudged, core::WallTime now);
/// The object of `status` with "judged" and "unknown_runs".
std::string with_unjudged(std::string status, const Unjudged& unjudged);

}  // namespace tocsin::app
