// What the engine counts about itself. Nothing is refused, dropped or given up uncounted.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/function_ref.h"

namespace tocsin::rules {

/// Counters since the engine was made.
struct EngineStats {
  std::uint64_t frames = 0;
  std::uint64_t rows = 0;
  std::uint64_t duplicate_frames = 0;   // sequence not new
  std::uint64_t stale_frames = 0;       // earlier attempt or incarnation, ended run
  std::uint64_t moved_launches = 0;     // incarnations that moved to a later attempt
  std::uint64_t late_launches = 0;      // starts that belong to an earlier attempt
  std::uint64_t duplicate_rows = 0;     // step not later than the unit's last
  std::uint64_t late_rows = 0;          // their step was already judged
  std::uint64_t missing_frames = 0;     // gaps in sequences
  std::uint64_t refused_units = 0;      // beyond max_units_per_run
  std::uint64_t withheld_units = 0;     // of runs over several shards, from rules that join tensors
  std::uint64_t refused_runs = 0;       // frames of runs beyond max_runs
  std::uint64_t evicted_runs = 0;       // ended runs that made room for others
  std::uint64_t discarded_samples = 0;  // NaN, negative or far-future system samples
  std::uint64_t bad_attrs =
      0;  // dictionary entries with attributes that are not what they should be
  std::uint64_t partial_steps = 0;
  std::uint64_t open_steps_closed = 0;  // closed early: more values waited than allowed
  std::uint64_t future_times = 0;       // frames that claim to come from the far future
  std::uint64_t failed_jobs = 0;
  std::uint64_t lost_jobs = 0;
  std::uint64_t revived_jobs = 0;         // lost ones that were heard of again
  std::uint64_t state_faults = 0;         // changelogs that could not be read as a state
  std::uint64_t evaluations = 0;          // of a unit by a rule
  std::uint64_t hits = 0;                 // those whose condition held
  std::uint64_t shadow_issues = 0;        // issues of rules in shadow: recorded, told to nobody
  std::uint64_t reloads = 0;              // of the rules, per partition
  std::uint64_t comparisons_told = 0;     // records about a run that others are compared with
  std::uint64_t comparisons_learned = 0;  // of runs that are read elsewhere, per partition
  std::uint64_t snapshots = 0;            // completed
  std::uint64_t snapshot_bytes = 0;
  // Now, not since the start:
  std::uint64_t runs = 0;
  std::uint64_t units = 0;
  std::uint64_t open_issues = 0;
};

/// Calls `each` for every counter (they only grow). Names are complete metric names.
void for_each_counter(
    const EngineStats& stats,
    core::FunctionRef<void(std::string_view name, std::string_view help, std::uint64_t value)>
        each);
/// Calls `each` for every value that goes up and down.
void for_each_gauge(
    const EngineStats& stats,
    core::FunctionRef<void(std::string_view name, std::string_view help, std::uint64_t value)>
        each);

}  // namespace tocsin::rules
