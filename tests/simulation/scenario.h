// Everything that a seed decides before the world begins: who there is, how it is configured, what
// goes wrong how often.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/stages/evaluate.h"
#include "routing/routing.h"
#include "tests/simulation/random.h"

namespace tocsin::simulation {

/// How one process of one launch ends.
enum class WorkerEnd { completes, fails, dies, hangs };

/// A value that a rule has something to say about.
struct Anomaly {
  enum class What { nan, zeros } what = What::nan;
  std::uint32_t rank = 0;
  std::size_t tensor = 0;
  std::int64_t first = 0, last = 0;  // steps
};

/// One start of all ranks of a run.
struct LaunchPlan {
  std::string key;          // empty: the ranks share nothing that names the launch
  core::Duration starts{};  // after the world's beginning
  core::Duration skew{};    // between two ranks
  std::int64_t first_step = 0, steps = 0;
  WorkerEnd end = WorkerEnd::completes;
  std::int64_t ends_at = 0;  // step, of the rank that does not complete
  std::uint32_t bad_rank = 0;
  bool in_place = false;  // the same process opens the hook again: same pid
  std::vector<Anomaly> anomalies;
};

struct RunPlan {
  std::string name;
  std::uint32_t ranks = 1;
  std::size_t tensors = 2;
  core::Duration step_time{};
  std::vector<LaunchPlan> launches;
};

/// Shares of the moments at which something of that kind goes wrong; 0 = never in this world.
struct FaultRates {
  double crash = 0;
  double freeze = 0;
  double rebalance = 0;
  double throw_out = 0;
  double away = 0;    // the broker does not answer
  double commit = 0;  // of commits: refused, lost, hanging, disk full
  double read = 0;    // of reads of a state topic
  double poll = 0;    // of polls
  double clock_jump = 0;
  double clock_hour = 0;  // jumps of an hour either way, and of a leap second
  double compaction = 0;
  double duplicated = 0;  // of telemetry records
  double delayed = 0;
  double missing = 0;
  double receiver = 0;  // of calls
  double gone = 0;      // of calls: refused for good
  double reload = 0;    // the leaders start again with another route
  double retention = 0;
};

/// Stops wait for a person's word.
struct ApprovalPlan {
  double words = 0;  // share of turns in which somebody looks at what waits; 0: stops do not wait
  core::Duration timeout = std::chrono::seconds(30);
  bool proceed = false;  // when nobody has said a word by then
};

struct Scenario {
  std::uint64_t seed = 0;
  /// What may be awaited of time plays no part: grace periods are longer than the world, so that
  /// every rule's issues are the same whatever happens.
  bool timeless = false;
  std::int32_t partitions = 3;
  std::size_t evaluators = 2;
  std::size_t leaders = 2;  // processes with a router and a deliverer
  bool stops = false;       // NaN stops a run; an agent enforces it
  bool agent = false;       // the node's agent sweeps, and tells of processes that end
  bool eager = false;
  bool markers = true;
  double acks = 0;      // share of turns in which people acknowledge, or take that back
  double silences = 0;  // share of turns in which people silence a rule, or end that
  ApprovalPlan approvals;
  bool at_least_once = false;                        // evaluators commit without transactions
  core::Duration length = std::chrono::seconds(60);  // faults end then
  std::vector<RunPlan> runs;
  std::string rules;  // YAML list
  rules::EngineConfig engine;
  routing::RouteConfig route;
  std::vector<routing::RouteConfig> other_routes;  // that a reload may bring
  std::vector<routing::InhibitRule> inhibit_rules;
  FaultRates faults;
};

Scenario scenario_of(std::uint64_t seed);
/// The same world, where the clock jumps by an hour or a second and leaders start again in between.
Scenario clock_scenario_of(std::uint64_t seed);
/// One paragraph for people.
std::string describe(const Scenario& scenario);

}  // namespace tocsin::simulation
