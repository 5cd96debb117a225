// The life of an issue: merging reports, beginning and ending episodes (docs/routing.md).
#pragma once

#include <cstdint>
#include <string_view>

#include "routing/routing.h"
#include "routing/tables/state.h"

namespace tocsin::routing {

/// What one report did to an issue.
enum class Effect {
  stale,     // older than what is known: ignored
  updated,   // same episode, same status
  repeated,  // the same, and nothing in it that anybody reads is new: it was only said again
  began,     // a new episode fires
  resumed,   // the episode that had ended goes on: the resolve was premature
  ended,     // the episode resolved
  orphan,    // a resolve of something that never fired here
};

/// The report with its missing times filled in: starts_at from time from arrival; a resolve ends at
/// the latest on arrival; a begin further ahead than `max_future` becomes the arrival (`clamped`).
core::Issue normalized(core::Issue report, core::WallTime now, core::Duration max_future,
                       bool& clamped);

/// Merges a normalized report into the state.
Effect apply(IssueState& state, const core::Issue& report, core::WallTime now,
             core::Duration resolve_timeout);

/// A normalized report that fires, as far as one that says nothing new is read.
struct Said {
  std::string_view source;
  std::uint64_t sequence = 0;
  core::WallTime time{};
  core::WallTime starts_at{};
};
/// May a report that differs at most in this from one that made the state what it is be merged by
/// say_again()? It is the newest, and dates nothing back.
bool only_said_again(const IssueState& state, const Said& said);
/// What apply() does with such a report: Effect::repeated.
void say_again(IssueState& state, const Said& said, core::WallTime now,
               core::Duration resolve_timeout);
/// Is the state what this normalized report made of it, so that one that differs at most as Said does
/// says nothing new?
bool made_by(const IssueState& state, const core::Issue& report);

/// Ends the present episode, not before it began. Does nothing when it is not firing.
void resolve(IssueState& state, core::Resolution resolution, core::WallTime at);

}  // namespace tocsin::routing
