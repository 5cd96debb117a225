// A rule that flags too many of the jobs that run is itself suspected: its stops wait for a person
// (docs/approvals.md).
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/identity.h"
#include "core/issue.h"
#include "core/running_run.h"
#include "core/stop_request.h"
#include "core/time.h"

namespace tocsin::actions {

/// More than `fraction` of the jobs that run, flagged by one rule in `per`. Of fewer than `min_jobs` running
/// jobs nothing is concluded.
struct MaxFraction {
  double fraction = 0.5;
  core::Duration per = std::chrono::minutes(10);
  std::uint64_t min_jobs = 4;
};

/// "max_fraction: loss_nan flags 4 of 6 running jobs in 10m"; nullopt: within bounds. `flagged`: runs for
/// which the rule has asked for a stop in that time, whatever became of it, this one among them.
std::optional<std::string> beyond_fraction(const MaxFraction& bound, const std::string& rule,
                                           const std::set<core::RunUid>& flagged,
                                           const std::vector<core::RunningRun>& running);

class StopLedger;
class StopApprovals;
/// The runs that count against the rule of `issue`: its own, and those that it has asked to stop since.
std::set<core::RunUid> flagged_runs(StopLedger& ledger, const StopApprovals& approvals,
                                    const core::Issue& issue, core::WallTime since);

/// Does this request wait, or did it, because its rule is suspected?
bool suspected(const core::StopRequest& request);
bool waits_for_suspicion(const core::StopRequest& request);

/// The one issue by which people hear of it, however many stops wait. `first`: of those that wait, the one
/// that was asked first; `place`: words by which a command names where records lie.
core::Issue stop_suspect_issue(const core::StopRequest& first, const std::string& why,
                               const std::string& cluster, const std::vector<std::string>& place);
/// None of its stops waits any more.
core::Issue stop_suspect_over(const std::string& rule, const std::string& cluster,
                              core::WallTime at);

}  // namespace tocsin::actions
