// One table of everything that is exported: a counter that is missing here is missing everywhere.
#include "rules/contract/stats.h"

#include <array>

namespace tocsin::rules {
namespace {

struct Item {
  std::string_view name;
  std::string_view help;
  std::uint64_t EngineStats::*value;
};

constexpr std::array<Item, 30> kCounters{{
    {"tocsin_rules_frames_total", "telemetry frames handled", &EngineStats::frames},
    {"tocsin_rules_rows_total", "telemetry rows judged", &EngineStats::rows},
    {"tocsin_rules_duplicate_frames_total", "frames whose sequence was not new",
     &EngineStats::duplicate_frames},
    {"tocsin_rules_stale_frames_total", "frames of earlier attempts, processes or ended runs",
     &EngineStats::stale_frames},
    {"tocsin_rules_moved_launches_total", "processes that moved to a later attempt",
     &EngineStats::moved_launches},
    {"tocsin_rules_late_launches_total", "starts that belong to an earlier attempt",
     &EngineStats::late_launches},
    {"tocsin_rules_duplicate_rows_total", "rows whose step was not later than their unit's last",
     &EngineStats::duplicate_rows},
    {"tocsin_rules_late_rows_total", "rows whose step was already judged", &EngineStats::late_rows},
    {"tocsin_rules_missing_frames_total", "frames that never came", &EngineStats::missing_frames},
    {"tocsin_rules_refused_units_total", "rows of units beyond max_units_per_run",
     &EngineStats::refused_units},
    {"tocsin_rules_withheld_units_total",
     "units of runs over several shards that rules of several or of series were not given",
     &EngineStats::withheld_units},
    {"tocsin_rules_refused_runs_total", "frames of runs beyond max_runs",
     &EngineStats::refused_runs},
    {"tocsin_rules_evicted_runs_total", "ended runs that made room for others",
     &EngineStats::evicted_runs},
    {"tocsin_rules_discarded_samples_total", "system samples that are no number or not of now",
     &EngineStats::discarded_samples},
    {"tocsin_rules_bad_attributes_total",
     "attributes of names that are not what they should be, and names, labels and jobs that were "
     "cut",
     &EngineStats::bad_attrs},
    {"tocsin_rules_partial_steps_total", "steps judged with frames missing",
     &EngineStats::partial_steps},
    {"tocsin_rules_steps_closed_early_total", "times that too many values waited for their step",
     &EngineStats::open_steps_closed},
    {"tocsin_rules_future_times_total", "frames that claim to come from the far future",
     &EngineStats::future_times},
    {"tocsin_rules_failed_jobs_total", "jobs that ended failed", &EngineStats::failed_jobs},
    {"tocsin_rules_lost_jobs_total", "jobs that ended without a word", &EngineStats::lost_jobs},
    {"tocsin_rules_revived_jobs_total", "lost jobs that were heard of again",
     &EngineStats::revived_jobs},
    {"tocsin_rules_state_faults_total", "times that stored state could not be read",
     &EngineStats::state_faults},
    {"tocsin_rules_evaluations_total", "evaluations of a unit by a rule",
     &EngineStats::evaluations},
    {"tocsin_rules_hits_total", "evaluations whose condition held", &EngineStats::hits},
    {"tocsin_rules_shadow_issues_total",
     "events of issues of rules in shadow: recorded, told to nobody", &EngineStats::shadow_issues},
    {"tocsin_rules_reloads_total", "partitions that went on with other rules",
     &EngineStats::reloads},
    {"tocsin_rules_comparisons_told_total",
     "records about runs that others are compared with or measured by",
     &EngineStats::comparisons_told},
    {"tocsin_rules_comparisons_learned_total",
     "such records that a partition took up, of runs that it does not read",
     &EngineStats::comparisons_learned},
    {"tocsin_rules_snapshots_total", "snapshots completed", &EngineStats::snapshots},
    {"tocsin_rules_snapshot_bytes_total", "bytes written for snapshots",
     &EngineStats::snapshot_bytes},
}};

constexpr std::array<Item, 3> kGauges{{
    {"tocsin_rules_runs", "runs whose state is kept", &EngineStats::runs},
    {"tocsin_rules_units", "units (tensor, worker, mode) followed", &EngineStats::units},
    {"tocsin_rules_open_issues", "issues firing now", &EngineStats::open_issues},
}};

}  // namespace

void for_each_counter(
    const EngineStats& stats,
    core::FunctionRef<void(std::string_view, std::string_view, std::uint64_t)> each) {
  for (const Item& item : kCounters) each(item.name, item.help, stats.*item.value);
}

void for_each_gauge(
    const EngineStats& stats,
    core::FunctionRef<void(std::string_view, std::string_view, std::uint64_t)> each) {
  for (const Item& item : kGauges) each(item.name, item.help, stats.*item.value);
}

}  // namespace tocsin::rules
