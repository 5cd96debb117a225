#include "app/api/fleet_tally.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

#include "core/json.h"
#include "core/value.h"
#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

constexpr std::size_t kMostFleetRuns = 20'000;
constexpr std::size_t kMostFleetIssues = 20'000;
constexpr std::size_t kMostLabelBytes = std::size_t{1} << 20U;

bool has_failed(const insights::RunLine& run) {
  return run.phase == "ended" &&
         (run.outcome == "failed" || run.outcome == "lost" || run.outcome == "stopped_by_rule");
}

void add_run(const insights::RunLine& run, FleetTally& to) {
  to.runs.insert(run.uid);
  if (run.phase != "ended") to.running.insert(run.uid);
  if (has_failed(run)) to.failed.insert(run.uid);
}

using WorkersOfRuns = std::map<std::string, std::vector<const insights::PlacedWorker*>>;
WorkersOfRuns workers_by_run(const FleetRecent& recent) {
  WorkersOfRuns out;
  for (const insights::PlacedWorker& one : recent.workers) out[one.run].push_back(&one);
  return out;
}

// Where the worker was in the issue's attempt; if no client of it told that attempt, wherever it was.
std::set<std::string> nodes_of_worker(const std::vector<const insights::PlacedWorker*>& workers,
                                      const insights::IssueLine& issue) {
  std::set<std::string> then;
  std::set<std::string> ever;
  for (const insights::PlacedWorker* one : workers) {
    if (one->worker != issue.worker) continue;
    ever.insert(one->node);
    if (one->attempt == issue.attempt) then.insert(one->node);
  }
  return then.empty() ? ever : then;
}

}  // namespace

std::string named_node_of(insights::EventReader& events, const insights::IssueLine& issue) {
  if (!issue.worker.empty()) return "";
  const auto kept = events.first_report(issue);
  // Thousands of issues have no such label: the word is not in what was told.
  if (!kept || kept->record.value.value_or("").find("\"node\"") == std::string::npos) return "";
  const auto decoded = ingest::decode_event(kept->view());
  const auto* told = decoded ? std::get_if<core::Issue>(&decoded->event) : nullptr;
  return told == nullptr ? "" : std::string(told->labels.get("node"));
}

core::Result<FleetRecent> read_fleet(insights::EventReader& events, insights::SeriesReader& series,
                                     std::int64_t since) {
  FleetRecent out;
  for (insights::RunLine& run : events.runs_since(since, kMostFleetRuns)) {
    std::string uid = run.uid;
    out.runs.emplace(std::move(uid), std::move(run));
  }
  out.issues = events.issues_since(since, kMostFleetIssues);
  for (const insights::IssueLine& issue : out.issues)
    out.named_nodes.push_back(named_node_of(events, issue));
  out.workers = series.placed_workers();
  std::erase_if(out.workers, [&](const auto& one) { return !out.runs.contains(one.run); });
  out.agents = series.all_nodes();
  if (const auto status = events.failure(); !status) return status.error();
  if (const auto status = series.failure(); !status) return status.error();
  return out;
}

std::map<std::string, FleetTally> tally_by_node(const FleetRecent& recent) {
  std::map<std::string, FleetTally> out;
  for (const insights::ServedNode& agent : recent.agents) {
    FleetTally& tally = out[agent.name];
    tally.nodes.insert(agent.name);
    tally.agents.insert(agent.owner);
  }
  for (const insights::PlacedWorker& one : recent.workers) {
    FleetTally& tally = out[one.node];
    tally.nodes.insert(one.node);
    add_run(recent.runs.at(one.run), tally);
  }
  const WorkersOfRuns workers = workers_by_run(recent);
  for (std::size_t at = 0; at < recent.issues.size(); ++at) {
    const insights::IssueLine& issue = recent.issues[at];
    const auto of_run = workers.find(issue.run);
    std::set<std::string> where;
    if (!issue.worker.empty() && of_run != workers.end())
      where = nodes_of_worker(of_run->second, issue);
    if (where.empty() && !recent.named_nodes[at].empty()) where.insert(recent.named_nodes[at]);
    if (where.empty() && issue.worker.empty() && of_run != workers.end()) {
      for (const insights::PlacedWorker* one : of_run->second) where.insert(one->node);
    }
    for (const std::string& node : where) {
      out[node].nodes.insert(node);
      out[node].issues.push_back(at);
    }
  }
  return out;
}

std::map<std::string, FleetTally> tally_by_label(const FleetRecent& recent,
                                                 const std::string& label) {
  std::map<std::string, FleetTally> out;
  std::map<std::string, std::string> value_of;
  std::map<std::string_view, std::string> value_in;  // by labels: runs of a job have the same
  for (const auto& [uid, run] : recent.runs) {
    const auto [known, fresh] = value_in.try_emplace(run.labels);
    if (fresh) {
      const auto labels = core::parse_json(run.labels, kMostLabelBytes);
      if (labels) known->second = core::text_at(*labels, label);
    }
    const std::string& value = known->second;
    value_of.emplace(uid, value);
    add_run(run, out[value]);
  }
  for (const insights::PlacedWorker& one : recent.workers)
    out[value_of.at(one.run)].nodes.insert(one.node);
  for (std::size_t at = 0; at < recent.issues.size(); ++at) {
    const auto value = value_of.find(recent.issues[at].run);
    if (value != value_of.end()) out[value->second].issues.push_back(at);
  }
  return out;
}

double middle_of(std::vector<std::size_t> counts) {
  if (counts.empty()) return 0;
  std::sort(counts.begin(), counts.end());
  const std::size_t half = counts.size() / 2;
  const auto upper = static_cast<double>(counts[half]);
  return counts.size() % 2 == 1 ? upper : (upper + static_cast<double>(counts[half - 1])) / 2;
}

}  // namespace tocsin::app
