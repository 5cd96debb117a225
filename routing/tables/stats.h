// The router's figures, and the metrics that they are.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/function_ref.h"
#include "core/time.h"

namespace tocsin::routing {

/// Totals since create(), and present sizes.
struct Stats {
  std::uint64_t events = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t stale = 0;
  std::uint64_t rejected = 0;      // no labels
  std::uint64_t clamped = 0;       // began too far in the future
  std::uint64_t late_issues = 0;   // of a run that had ended, or of an earlier attempt
  std::uint64_t seen_evicted = 0;  // ids forgotten within the window: more than dedup_max
  std::uint64_t orphan_resolves = 0;
  std::uint64_t groups_overflow = 0;
  std::uint64_t suppressed = 0;  // member × flush × reason
  std::uint64_t inhibited = 0;   // of these, by inhibition
  std::uint64_t muted = 0;       // of these, by a time interval of the route
  std::uint64_t owed_dropped = 0;
  std::uint64_t ends_deferred = 0;  // told once their issue is no longer suppressed
  std::uint64_t ends_dropped = 0;   // suppressed, where resolve_when_suppressed says drop
  std::uint64_t flushes = 0;
  std::uint64_t notifications = 0;
  std::uint64_t truncated = 0;  // issues that a message counted and did not list
  std::uint64_t untold = 0;     // episodes whose message never arrived: news again
  // Present sizes:
  std::uint64_t firing = 0;
  std::uint64_t issues = 0;
  std::uint64_t groups = 0;  // with members
  std::uint64_t runs = 0;
  std::uint64_t seen = 0;
  std::uint64_t owed = 0;
  std::uint64_t undelivered = 0;         // messages without a final state
  std::uint64_t waiting = 0;             // held back while the input is behind
  std::uint64_t inhibitors = 0;          // sources of inhibit rules
  std::uint64_t flapping = 0;            // issues that are damped
  std::uint64_t acked = 0;               // episodes that somebody has acknowledged
  std::uint64_t silences = 0;            // in force at the newest tick
  std::uint64_t silences_unmatched = 0;  // of these, such as match no firing issue
  std::uint64_t silences_pending = 0;
  std::uint64_t silences_expired = 0;                // and not yet forgotten
  std::optional<core::WallTime> oldest_undelivered;  // when it was decided
  std::optional<core::WallTime> next_due;            // what tick() would do first
};

/// Calls `each` for every counter (they only grow). Names are complete metric names.
void for_each_counter(
    const Stats& stats,
    core::FunctionRef<void(std::string_view name, std::string_view help, std::uint64_t value)>
        each);
/// Calls `each` for every value that goes up and down; ages are seconds at `now`.
void for_each_gauge(
    const Stats& stats, core::WallTime now,
    core::FunctionRef<void(std::string_view name, std::string_view help, double value)> each);

}  // namespace tocsin::routing
