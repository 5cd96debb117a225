// Which runs were where, and what failed there: counts by node, or by a label of runs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/result.h"
#include "insights/insights.h"

namespace tocsin::app {

/// What one node, or the runs of one label's value, have seen. A run, and an issue, counts once.
struct FleetTally {
  std::set<std::string> runs;       // uids, heard of within the time
  std::set<std::string> running;    // of them
  std::set<std::string> failed;     // of them: ended as failed, lost or stopped_by_rule
  std::set<std::string> nodes;      // of these runs
  std::set<std::string> agents;     // that sampled it, as owners of series
  std::vector<std::size_t> issues;  // places in FleetRecent::issues, the newest first
};

/// Runs and issues of some days.
struct FleetRecent {
  std::map<std::string, insights::RunLine> runs;  // by uid
  std::vector<insights::IssueLine> issues;        // the newest first
  std::vector<std::string> named_nodes;           // by issue: its label `node` if it has no worker
  std::vector<insights::PlacedWorker> workers;    // of these runs
  std::vector<insights::ServedNode> agents;
};

/// `since`: microseconds, UTC. Errors: what failed while reading.
core::Result<FleetRecent> read_fleet(insights::EventReader& events, insights::SeriesReader& series,
                                     std::int64_t since);

/// The node that a report of the issue names by its label `node`, if it has no worker; "": none.
std::string named_node_of(insights::EventReader& events, const insights::IssueLine& issue);

/// A node has a run if a worker of it was there. It has an issue if the issue's worker was there in
/// the issue's attempt; if the issue has no worker, if its label `node` names it; with neither, if it
/// has the run.
std::map<std::string, FleetTally> tally_by_node(const FleetRecent& recent);
/// By the value of a label of runs; "": runs without it.
std::map<std::string, FleetTally> tally_by_label(const FleetRecent& recent,
                                                 const std::string& label);

/// The middle of sorted numbers; of an even count the mean of the two in the middle. Empty: 0.
double middle_of(std::vector<std::size_t> counts);

}  // namespace tocsin::app
