#include "app/api/fleet_routes.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "app/api/api_rows.h"
#include "app/api/fleet_tally.h"
#include "app/api/past_fleet.h"
#include "app/api/past_run.h"
#include "app/api/run_first_signs.h"
#include "app/api/run_story.h"
#include "app/serve/problem.h"
#include "core/json.h"
#include "core/text.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using core::Value;
using core::ValueList;
using core::ValueMap;

constexpr auto kFleetTime = std::chrono::hours(7 * 24);
constexpr std::int64_t kSilentAfter = 60'000;  // milliseconds without a sample
constexpr std::size_t kMostListed = 100;       // runs and issues of one node
constexpr std::size_t kLeastToStandOut = 2;    // failed runs
constexpr std::int64_t kMicrosInAMilli = 1000;

std::int64_t micros_of(core::WallTime time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
}
std::string text_of_millis(std::int64_t millis) {
  return core::to_rfc3339(core::WallTime(
      std::chrono::duration_cast<core::WallTime::duration>(std::chrono::milliseconds(millis))));
}
Value count_or_null(const std::optional<double>& number) {
  return number ? Value(static_cast<std::int64_t>(*number)) : Value();
}

struct FleetSight {
  FleetRecent recent;
  std::unique_ptr<insights::EventReader> events;
  std::unique_ptr<insights::SeriesReader> series;
  core::WallTime now{}, since{};  // now: or the moment that is asked for
  bool past = false;
};

// nullptr: `refusal` says why.
std::unique_ptr<FleetSight> look_at_fleet(ApiDesk& desk, const ApiCall& call, HttpAnswer& refusal) {
  const auto at = moment_of(call);
  if (const auto past = check_moment(at.value_or(core::WallTime{}), desk.clock.now()); !past) {
    refusal = problem(400, "invalid-parameter", past.error().message, "at");
    return nullptr;
  }
  auto events = desk.insights.reader();
  if (!events) {
    refusal = problem(events.error());
    return nullptr;
  }
  auto series = desk.curves.reader();
  if (!series) {
    refusal = problem(series.error());
    return nullptr;
  }
  auto out = std::make_unique<FleetSight>();
  out->events = std::move(*events);
  out->series = std::move(*series);
  out->now = at.value_or(desk.clock.now());
  out->past = at.has_value();
  out->since = out->now - kFleetTime;
  const std::int64_t since = micros_of(out->since);
  auto recent = at ? read_past_fleet(*out->events, *out->series, since, *at)
                   : read_fleet(*out->events, *out->series, since);
  if (!recent) {
    refusal = problem(recent.error());
    return nullptr;
  }
  out->recent = std::move(*recent);
  mark_first_signs(out->recent.issues);
  return out;
}

// Several agents may have called themselves by one name: the one that was heard last.
Value agent_value(const FleetSight& fleet, const FleetTally& tally) {
  std::optional<insights::NodeHealth> newest;
  insights::HealthTimes times{micros_of(fleet.since) / kMicrosInAMilli, std::nullopt};
  if (fleet.past) times.until = micros_of(fleet.now) / kMicrosInAMilli;
  for (const std::string& owner : tally.agents) {
    auto health = insights::ask_node_health(*fleet.series, owner, times);
    if (health && (!newest || health->heard > newest->heard)) newest = health;
  }
  if (!newest) return {};
  const std::int64_t age = micros_of(fleet.now) / kMicrosInAMilli - newest->heard;
  return ValueMap{{"heard_at", text_of_millis(newest->heard)},
                  {"silent", age > kSilentAfter},
                  {"interval_ms", newest->interval ? Value(*newest->interval) : Value()},
                  {"cpu", number_or_null(newest->cpu)},
                  {"gpu", number_or_null(newest->gpu)},
                  {"memory", number_or_null(newest->memory)},
                  {"xids", count_or_null(newest->xids)},
                  {"ecc_corrected", count_or_null(newest->corrected)},
                  {"ecc_uncorrected", count_or_null(newest->uncorrected)},
                  {"throttled", number_or_null(newest->throttled)}};
}

struct FleetMiddle {
  double failed = 0, issues = 0;
};
FleetMiddle middle_of_all(const std::map<std::string, FleetTally>& all) {
  std::vector<std::size_t> failed;
  std::vector<std::size_t> issues;
  for (const auto& entry : all) {
    failed.push_back(entry.second.failed.size());
    issues.push_back(entry.second.issues.size());
  }
  return {middle_of(std::move(failed)), middle_of(std::move(issues))};
}

ValueMap fleet_row(const FleetSight& fleet, const std::string& name, const FleetTally& tally,
                   const FleetMiddle& middle, bool of_node) {
  ValueList nodes;
  for (const std::string& node : tally.nodes) nodes.emplace_back(node);
  const std::size_t failed = tally.failed.size();
  return ValueMap{
      {"name", name},
      {"runs_now", static_cast<std::int64_t>(tally.running.size())},
      {"runs", static_cast<std::int64_t>(tally.runs.size())},
      {"failed_runs", static_cast<std::int64_t>(failed)},
      {"issues", static_cast<std::int64_t>(tally.issues.size())},
      {"stands_out", failed >= kLeastToStandOut && static_cast<double>(failed) > 2 * middle.failed},
      {"nodes", std::move(nodes)},
      {"agent", of_node ? agent_value(fleet, tally) : Value()}};
}

ValueMap middle_value(const FleetMiddle& middle) {
  return ValueMap{{"failed_runs", middle.failed}, {"issues", middle.issues}};
}

HttpAnswer list_fleet(ApiDesk& desk, const ApiCall& call) {
  HttpAnswer refusal;
  const auto fleet = look_at_fleet(desk, call, refusal);
  if (!fleet) return refusal;
  const std::string by = std::string(call.query.value("by").value_or("node"));
  const bool of_nodes = by == "node";
  const auto tallies = of_nodes ? tally_by_node(fleet->recent) : tally_by_label(fleet->recent, by);
  const FleetMiddle middle = middle_of_all(tallies);
  std::vector<const std::pair<const std::string, FleetTally>*> order;
  order.reserve(tallies.size());
  for (const auto& entry : tallies) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return std::pair(a->second.failed.size(), a->second.issues.size()) >
           std::pair(b->second.failed.size(), b->second.issues.size());
  });
  ValueList items;
  for (const auto* one : order)
    items.push_back(fleet_row(*fleet, one->first, one->second, middle, of_nodes));
  std::set<std::string> names;
  std::set<std::string_view> seen;  // runs of a job have the same labels
  for (const auto& entry : fleet->recent.runs) {
    if (!seen.insert(entry.second.labels).second) continue;
    const auto labels = core::parse_json(entry.second.labels, std::size_t{1} << 20U);
    const auto* members = labels ? core::as<ValueMap>(*labels) : nullptr;
    if (members == nullptr) continue;
    for (const auto& label : *members) names.insert(label.first);
  }
  ValueList labels;
  for (const std::string& name : names) labels.emplace_back(name);
  if (const auto status = fleet->series->failure(); !status) return problem(status.error());
  return {200, core::to_json(ValueMap{{"by", by},
                                      {"since", core::to_rfc3339(fleet->since)},
                                      {"items", std::move(items)},
                                      {"median", middle_value(middle)},
                                      {"labels", std::move(labels)},
                                      {"as_of", core::to_rfc3339(fleet->now)}}) +
                   "\n"};
}

HttpAnswer told_unknown(const std::string& asked, const std::map<std::string, FleetTally>& all,
                        const FleetSight& fleet) {
  std::vector<std::string> names;
  names.reserve(all.size());
  for (const auto& entry : all) names.push_back(entry.first);
  const std::string near = core::nearest(asked, names);
  return problem(
      {core::Code::not_found, "node: no agent and no worker of the " +
                                  (fleet.past ? "seven days before " + core::to_rfc3339(fleet.now)
                                              : std::string("last seven days")) +
                                  " is on \"" + core::visible(asked, 100) + "\"" +
                                  (near.empty() ? "" : "; did you mean \"" + near + "\"?")});
}

// As GET /api/v1/runs/{run} tells it.
void add_run_row(const FleetSight& fleet, const std::string& uid, ValueList& rows) {
  auto line = fleet.events->run(uid);
  if (!line) return;
  auto issues = fleet.events->issues_of(uid);
  if (fleet.past) {
    auto told = fleet.events->events_of(uid);
    if (!put_back(*line, issues, told, fleet.now)) return;
  }
  mark_first_signs(issues);
  rows.push_back(run_row(*line, issues));
}

HttpAnswer show_fleet_node(ApiDesk& desk, const ApiCall& call) {
  HttpAnswer refusal;
  const auto fleet = look_at_fleet(desk, call, refusal);
  if (!fleet) return refusal;
  const std::string& asked = call.request.in_path.find("node")->second;
  const auto tallies = tally_by_node(fleet->recent);
  const auto found = tallies.find(asked);
  if (found == tallies.end()) return told_unknown(asked, tallies, *fleet);
  const FleetTally& tally = found->second;
  std::vector<std::pair<std::int64_t, std::string>> order;
  for (const std::string& uid : tally.runs)
    order.emplace_back(fleet->recent.runs.at(uid).heard, uid);
  std::sort(order.rbegin(), order.rend());
  if (order.size() > kMostListed) order.resize(kMostListed);
  ValueList runs;
  for (const auto& entry : order) add_run_row(*fleet, entry.second, runs);
  ValueList issues;
  for (const std::size_t at : tally.issues) {
    if (issues.size() >= kMostListed) break;
    const insights::IssueLine& issue = fleet->recent.issues[at];
    const auto run = fleet->recent.runs.find(issue.run);
    const bool known = run != fleet->recent.runs.end();
    issues.push_back(ValueMap{{"run", issue.run.empty() ? Value() : Value(issue.run)},
                              {"job", known ? Value(run->second.job) : Value()},
                              {"issue", issue_row(issue, known ? &run->second : nullptr)}});
  }
  const FleetMiddle middle = middle_of_all(tallies);
  ValueMap node = fleet_row(*fleet, asked, tally, middle, true);
  if (const auto status = fleet->events->failure(); !status) return problem(status.error());
  if (const auto status = fleet->series->failure(); !status) return problem(status.error());
  return {200, core::to_json(ValueMap{{"node", std::move(node)},
                                      {"since", core::to_rfc3339(fleet->since)},
                                      {"median", middle_value(middle)},
                                      {"runs", std::move(runs)},
                                      {"issues", std::move(issues)},
                                      {"as_of", core::to_rfc3339(fleet->now)}}) +
                   "\n"};
}

constexpr std::string_view kFleetSchemas =
    R"json({"FleetRow":{"type":"object","properties":{"name":{"type":"string",
   "description":"of the node, or the value of the label; empty: runs without it"},
   "runs_now":{"type":"integer"},"runs":{"type":"integer",
   "description":"heard of within seven days"},"failed_runs":{"type":"integer",
   "description":"of them: ended as failed, lost or stopped_by_rule"},
   "issues":{"type":"integer"},"stands_out":{"type":"boolean",
   "description":"two failed runs or more, and more than twice the median"},
   "nodes":{"type":"array","items":{"type":"string"}},"agent":{"type":"object","nullable":true,
   "description":"null: of a label, or no agent has sent samples","properties":{
   "heard_at":{"type":"string","format":"date-time"},"silent":{"type":"boolean",
   "description":"no sample for a minute"},"interval_ms":{"type":"integer","nullable":true},
   "cpu":{"type":"number","nullable":true},"gpu":{"type":"number","nullable":true},
   "memory":{"type":"number","nullable":true},"xids":{"type":"integer","nullable":true},
   "ecc_corrected":{"type":"integer","nullable":true},"ecc_uncorrected":{"type":"integer",
   "nullable":true},"throttled":{"type":"number","nullable":true,
   "description":"greatest share of samples in which one GPU was held back"}},
   "required":["heard_at","silent","interval_ms","cpu","gpu","memory","xids","ecc_corrected",
   "ecc_uncorrected","throttled"],"additionalProperties":false}},"required":["name","runs_now",
   "runs","failed_runs","issues","stands_out","nodes","agent"],"additionalProperties":false},
 "FleetMedian":{"type":"object","properties":{"failed_runs":{"type":"number"},
   "issues":{"type":"number"}},"required":["failed_runs","issues"],"additionalProperties":false},
 "Fleet":{"type":"object","properties":{"by":{"type":"string"},"since":{"type":"string",
   "format":"date-time"},"items":{"type":"array","items":{"$ref":"#/components/schemas/FleetRow"}},
   "median":{"$ref":"#/components/schemas/FleetMedian"},"labels":{"type":"array",
   "items":{"type":"string"},"description":"of runs, by which it can be asked"},
   "as_of":{"type":"string","format":"date-time"}},"required":["by","since","items","median",
   "labels","as_of"],"additionalProperties":false},
 "FleetNode":{"type":"object","properties":{"node":{"$ref":"#/components/schemas/FleetRow"},
   "since":{"type":"string","format":"date-time"},
   "median":{"$ref":"#/components/schemas/FleetMedian"},"runs":{"type":"array",
   "items":{"$ref":"#/components/schemas/RunRow"}},"issues":{"type":"array","items":{
   "type":"object","properties":{"run":{"type":"string","nullable":true},"job":{"type":"string",
   "nullable":true},"issue":{"$ref":"#/components/schemas/IssueRow"}},"required":["run","job",
   "issue"],"additionalProperties":false}},"as_of":{"type":"string","format":"date-time"}},
   "required":["node","since","median","runs","issues","as_of"],"additionalProperties":false}})json";

}  // namespace

std::string_view fleet_schemas() noexcept { return kFleetSchemas; }

std::vector<ApiRoute> fleet_routes(ApiDesk& desk) {
  ApiParameter node{"node", ParameterType::text, "its name"};
  node.in_path = true;
  return {{"GET",
           "/api/v1/nodes",
           ApiRole::viewer,
           "List nodes with their load, and what failed there within seven days",
           [&desk](const ApiCall& call) { return list_fleet(desk, call); },
           {{"by", ParameterType::text,
             "node, or the name of a label of runs, whose values are listed; node if not given"},
            moment_parameter()},
           {},
           {{200, "what failed most first", "Fleet"}}},
          {"GET",
           "/api/v1/nodes/{node}",
           ApiRole::viewer,
           "Show a node, its runs and its issues of seven days",
           [&desk](const ApiCall& call) { return show_fleet_node(desk, call); },
           {node, moment_parameter()},
           {},
           {{200, "the node", "FleetNode"}}}};
}

}  // namespace tocsin::app
