#include "app/api/past_fleet.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

#include "app/api/past_run.h"
#include "core/topics.h"

namespace tocsin::app {
namespace {

constexpr std::size_t kMostPastRuns = 20'000;
constexpr std::size_t kMostIssuesOfAll = 20'000;

std::int64_t past_micros(core::WallTime time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
}

// Of a run that was known then and heard of within the time.
void add_past_run(insights::EventReader& events, insights::RunLine run, std::int64_t since,
                  core::WallTime at, FleetRecent& out) {
  auto issues = events.issues_of(run.uid, kMostIssuesOfAll);
  auto told = events.events_of(run.uid);
  if (!put_back(run, issues, told, at) || run.heard < since) return;
  for (insights::IssueLine& one : issues) {
    if (one.opened >= since) out.issues.push_back(std::move(one));
  }
  std::string uid = run.uid;
  out.runs.emplace(std::move(uid), std::move(run));
}

// Of no run that was heard of, as a node that was lost: its own reports say how it was.
void add_loose_issue(insights::EventReader& events, const insights::IssueLine& line,
                     core::WallTime at, FleetRecent& out) {
  auto told = events.events_of_issue(line.key);
  insights::RunLine none;
  std::vector<insights::IssueLine> one{line};
  if (put_back(none, one, told, at) && !one.empty()) out.issues.push_back(std::move(one.front()));
}

}  // namespace

std::vector<insights::WorkerLine> workers_at(insights::SeriesReader& series,
                                             const insights::RunLine& run, core::WallTime at) {
  auto out = series.workers(run.uid);
  const std::int64_t until = past_micros(at) / 1000;
  std::erase_if(out, [&](const insights::WorkerLine& one) {
    // What was kept before the time was: by the attempt.
    return one.said ? *one.said > until : one.attempt > run.attempt;
  });
  return out;
}

core::Result<FleetRecent> read_past_fleet(insights::EventReader& events,
                                          insights::SeriesReader& series, std::int64_t since,
                                          core::WallTime at) {
  FleetRecent out;
  for (insights::RunLine& run : events.runs_since(since, kMostPastRuns))
    add_past_run(events, std::move(run), since, at, out);
  for (const insights::IssueLine& line : events.issues_since(since, kMostIssuesOfAll)) {
    if (line.run.empty() && line.opened <= past_micros(at)) add_loose_issue(events, line, at, out);
  }
  std::stable_sort(out.issues.begin(), out.issues.end(),
                   [](const auto& a, const auto& b) { return a.opened > b.opened; });
  for (const insights::IssueLine& issue : out.issues)
    out.named_nodes.push_back(named_node_of(events, issue));
  for (const auto& [uid, run] : out.runs) {
    for (insights::WorkerLine& one : workers_at(series, run, at)) {
      if (!one.node.empty())
        out.workers.push_back(
            {uid, std::move(one.node), std::move(one.name), one.rank, one.attempt});
    }
  }
  const std::int64_t until = past_micros(at) / 1000;
  for (insights::ServedNode& agent : series.all_nodes()) {
    if (series.sampled_by(agent.owner, until)) out.agents.push_back(std::move(agent));
  }
  if (const auto status = events.failure(); !status) return status.error();
  if (const auto status = series.failure(); !status) return status.error();
  return out;
}

}  // namespace tocsin::app
