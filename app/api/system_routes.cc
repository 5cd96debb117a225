#include "app/api/system_routes.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "app/api/heat_bytes.h"
#include "app/api/past_fleet.h"
#include "app/api/past_run.h"
#include "app/api/series_asking.h"
#include "app/serve/entity_tag.h"
#include "app/serve/problem.h"
#include "core/json.h"

namespace tocsin::app {
namespace {

using core::Value;
using core::ValueList;
using core::ValueMap;

constexpr std::int64_t kMostSystemPoints = 5000;
constexpr std::int64_t kUsualSystemPoints = 600;
constexpr std::int64_t kMostSystemSeries = 512;
constexpr std::int64_t kUsualSystemSeries = 64;
constexpr std::int64_t kMostCoreRows = 1000;
constexpr std::int64_t kUsualCoreRows = 400;
constexpr std::int64_t kMostCoreColumns = 2000;
constexpr std::int64_t kUsualCoreColumns = 600;
constexpr std::int64_t kLatestMilli = std::int64_t{1} << 53;
constexpr const char* kCoresAndGpus =
    "system\\.cpu\\.busy\\{cpu.*\\}|hw\\.gpu\\.utilization\\{hw.*\\}";

std::string milli_text(std::int64_t millis) {
  return core::to_rfc3339(core::WallTime(
      std::chrono::duration_cast<core::WallTime::duration>(std::chrono::milliseconds(millis))));
}

std::optional<std::int64_t> moment_millis(const ApiCall& call) {
  const auto at = moment_of(call);
  return at ? std::optional(core::nanoseconds(*at) / 1'000'000) : std::nullopt;
}

insights::SystemAsk samples_in(const ApiCall& call) {
  const UrlQuery& query = call.query;
  insights::SystemAsk out;
  out.until = moment_millis(call);
  out.node = std::string(query.value("node").value_or(".*"));
  out.name = std::string(query.value("name").value_or(".*"));
  if (query.value("from")) out.from = number_in(query, "from", 0);
  if (query.value("to")) out.to = number_in(query, "to", 0);
  return out;
}

// The store of the call; nullptr: `refusal` says why.
std::unique_ptr<insights::SeriesReader> samples_of_run(ApiDesk& desk, const ApiCall& call,
                                                       std::string& uid, HttpAnswer& refusal) {
  const auto at = moment_of(call).value_or(core::WallTime{});
  if (const auto past = check_moment(at, desk.clock.now()); !past) {
    refusal = problem(400, "invalid-parameter", past.error().message, "at");
    return nullptr;
  }
  return series_of_run(desk, call, uid, refusal);
}

std::string told_at(const ApiDesk& desk, const ApiCall& call) {
  return core::to_rfc3339(moment_of(call).value_or(desk.clock.now()));
}

bool backwards(const insights::SystemAsk& ask) {
  return ask.from && ask.to && *ask.from >= *ask.to;
}

HttpAnswer told_backwards() {
  return problem(400, "invalid-parameter", "to: expected a time behind from", "to");
}

ValueMap name_head(const std::string& node, const insights::NameLine& name) {
  const auto [metric, labels] = insights::split_series(name.text);
  return ValueMap{{"node", node},
                  {"name", name.text},
                  {"metric", std::string(metric)},
                  {"labels", std::string(labels)},
                  {"unit", name.unit.empty() ? Value() : Value(name.unit)}};
}

ValueMap system_line(const insights::SystemLine& line) {
  ValueMap out = name_head(line.node, line.name);
  ValueList x0;
  ValueList n;
  ValueList min;
  ValueList max;
  ValueList mean;
  ValueList bad;
  for (const auto& [x, value] : line.points) {
    const bool none = value.n == 0;
    if (value.bad() > 0)
      bad.push_back(ValueList{static_cast<std::int64_t>(x0.size()), std::int64_t{value.nan},
                              std::int64_t{value.posinf}, std::int64_t{value.neginf}, value.bad_x});
    x0.push_back(x);
    n.push_back(std::int64_t{value.n});
    min.push_back(none ? Value() : Value(value.min));
    max.push_back(none ? Value() : Value(value.max));
    mean.push_back(none ? Value() : Value(value.mean()));
  }
  out.emplace_back("stored", line.stored);
  out.emplace_back("x0", std::move(x0));
  out.emplace_back("n", std::move(n));
  out.emplace_back("min", std::move(min));
  out.emplace_back("max", std::move(max));
  out.emplace_back("mean", std::move(mean));
  out.emplace_back("bad", std::move(bad));
  return out;
}

// How many are stored counts those behind the range too, which still come.
ValueMap without_stored(const ValueMap& body) {
  ValueMap out;
  for (const auto& [name, value] : body) {
    const auto* series = core::as<ValueList>(value);
    if (name != "series" || series == nullptr) {
      out.emplace_back(name, value);
      continue;
    }
    ValueList lines;
    for (const Value& one : *series) {
      ValueMap kept = *core::as<ValueMap>(one);
      std::erase_if(kept, [](const auto& field) { return field.first == "stored"; });
      lines.emplace_back(std::move(kept));
    }
    out.emplace_back(name, std::move(lines));
  }
  return out;
}

HttpAnswer show_system(ApiDesk& desk, const ApiCall& call) {
  insights::SystemAsk ask = samples_in(call);
  if (backwards(ask)) return told_backwards();
  ask.points = number_in(call.query, "points", kUsualSystemPoints);
  ask.most = static_cast<std::size_t>(number_in(call.query, "limit", kUsualSystemSeries));
  HttpAnswer refusal;
  const auto reader = samples_of_run(desk, call, ask.run, refusal);
  if (!reader) return refusal;
  const auto answer = insights::ask_system(*reader, ask);
  if (!answer) return refused_ask(answer.error());
  if (const auto status = reader->failure(); !status) return problem(status.error());
  ValueList series;
  for (const auto& line : answer->lines) series.emplace_back(system_line(line));
  ValueMap body{{"x", "time"},
                {"level", answer->level},
                {"width", std::int64_t{1} << answer->level},
                {"from", answer->from},
                {"to", answer->to},
                {"series", std::move(series)},
                {"left_out", static_cast<std::int64_t>(answer->left_out)}};
  const std::string meaning = answer->settled ? core::to_json(without_stored(body)) : "";
  body.emplace_back("as_of", told_at(desk, call));
  HttpAnswer out{200, core::to_json(body) + "\n"};
  if (answer->settled) let_keep(call.request, meaning, out);
  return out;
}

ValueMap core_row(const insights::HeatRow& row, bool cells) {
  ValueMap out = name_head(row.first.shape, row.first);
  out.emplace_back("last", row.last.text);
  out.emplace_back("folded", row.folded);
  if (!cells) return out;
  ValueList values;
  for (const auto& cell : row.cells) values.push_back(cell ? Value(*cell) : Value());
  out.emplace_back("cells", std::move(values));
  return out;
}

HttpAnswer show_cores(ApiDesk& desk, const ApiCall& call) {
  insights::CoreAsk ask;
  ask.of = samples_in(call);
  if (!call.query.value("name")) ask.of.name = kCoresAndGpus;
  if (backwards(ask.of)) return told_backwards();
  ask.columns = number_in(call.query, "cols", kUsualCoreColumns);
  ask.rows = number_in(call.query, "max_rows", kUsualCoreRows);
  const auto agg = call.query.value("agg");
  if (agg == "min") ask.value = insights::HeatValue::min;
  if (agg == "max") ask.value = insights::HeatValue::max;
  HttpAnswer refusal;
  const auto reader = samples_of_run(desk, call, ask.of.run, refusal);
  if (!reader) return refusal;
  const auto heat = insights::ask_cores(*reader, ask);
  if (!heat) return refused_ask(heat.error());
  if (const auto status = reader->failure(); !status) return problem(status.error());
  const bool bytes = call.query.value("format") == "bin";
  ValueList rows;
  for (const insights::HeatRow& row : heat->rows) rows.emplace_back(core_row(row, !bytes));
  ValueMap head{{"x", "time"},
                {"level", heat->level},
                {"width", std::int64_t{1} << heat->level},
                {"from", heat->from},
                {"to", heat->to},
                {"series", heat->tensors},
                {"left_out", heat->left_out},
                {"rows", std::move(rows)},
                {"as_of", told_at(desk, call)}};
  if (bytes) return {200, heat_bytes(*heat, std::move(head), false), kColumnsType};
  return {200, core::to_json(Value(std::move(head))) + "\n"};
}

ValueList worker_list(const std::map<std::string, std::int64_t>& workers) {
  ValueList out;
  for (const auto& [name, rank] : workers) out.push_back(ValueMap{{"name", name}, {"rank", rank}});
  return out;
}

// Of a run it is only kept when a node served it first and last: of a moment between, its samples tell.
std::int64_t newest_of(const insights::NodeSeries& node, bool past) {
  std::int64_t out = 0;
  for (const insights::NamedFamilies& one : node.series)
    for (const insights::FamilyLine& family : one.families) out = std::max(out, family.x_last);
  return past && out > 0 ? std::min(out, node.node.x_last) : node.node.x_last;
}

// Metrics with how many series each has, cores, GPUs, and how far samples lie apart.
ValueMap node_line(const insights::NodeSeries& node,
                   const std::map<std::string, std::int64_t>& workers, bool gone,
                   std::int64_t last) {
  std::map<std::string, std::int64_t> metrics;
  ValueList gpus;
  std::int64_t cores = 0;
  std::int64_t interval = 0;
  for (const insights::NamedFamilies& one : node.series) {
    const auto [metric, labels] = insights::split_series(one.name.text);
    ++metrics[std::string(metric)];
    const auto device = insights::label_of(labels, "hw.id");
    if (metric == "hw.gpu.utilization" && !device.empty()) gpus.emplace_back(std::string(device));
    if (metric != "system.cpu.busy" || labels == "mean") continue;
    ++cores;
    const insights::FamilyLine& newest = one.families.back();
    if (newest.rows > 1) interval = (newest.x_last - newest.x_first) / (newest.rows - 1);
  }
  ValueList listed;
  for (const auto& [metric, count] : metrics)
    listed.push_back(ValueMap{{"metric", metric}, {"series", count}});
  return ValueMap{{"node", node.node.name},
                  {"workers", worker_list(workers)},
                  {"from", node.node.x_first},
                  {"to", last + 1},
                  {"first", milli_text(node.node.x_first)},
                  {"last", milli_text(last)},
                  {"cores", cores},
                  {"gpus", std::move(gpus)},
                  {"interval_ms", interval},
                  {"metrics", std::move(listed)},
                  {"samples_gone", gone}};
}

std::vector<insights::WorkerLine> workers_of_run(ApiDesk& desk, const ApiCall& call,
                                                 insights::SeriesReader& reader,
                                                 const std::string& run) {
  const auto at = moment_of(call);
  if (!at) return reader.workers(run);
  const auto store = desk.insights.reader();
  auto line = store ? (*store)->run(run) : std::nullopt;
  if (!line) return {};
  auto issues = (*store)->issues_of(run);
  auto events = (*store)->events_of(run);
  if (!put_back(*line, issues, events, *at)) return {};
  return workers_at(reader, *line, *at);
}

using WorkersOfNodes = std::map<std::string, std::map<std::string, std::int64_t>>;
WorkersOfNodes workers_of(ApiDesk& desk, const ApiCall& call, insights::SeriesReader& reader,
                          const std::string& run) {
  WorkersOfNodes out;
  for (const insights::WorkerLine& one : workers_of_run(desk, call, reader, run))
    if (!one.node.empty()) out[one.node][one.name] = one.rank;
  return out;
}

HttpAnswer show_nodes(ApiDesk& desk, const ApiCall& call) {
  insights::SystemAsk ask;
  ask.until = moment_millis(call);
  HttpAnswer refusal;
  const auto reader = samples_of_run(desk, call, ask.run, refusal);
  if (!reader) return refusal;
  const auto nodes = insights::choose_samples(*reader, ask);
  if (!nodes) return refused_ask(nodes.error());
  WorkersOfNodes workers = workers_of(desk, call, *reader, ask.run);
  ValueList items;
  for (const insights::NodeSeries& node : *nodes) {
    items.push_back(node_line(node, workers[node.node.name], reader->bulk_gone(node.node.owner),
                              newest_of(node, ask.until.has_value())));
    workers.erase(node.node.name);
  }
  ValueList silent;
  for (const auto& [node, on] : workers)
    silent.push_back(ValueMap{{"node", node}, {"workers", worker_list(on)}});
  if (const auto status = reader->failure(); !status) return problem(status.error());
  return {200, core::to_json(ValueMap{{"items", std::move(items)},
                                      {"without_samples", std::move(silent)},
                                      {"as_of", told_at(desk, call)}}) +
                   "\n"};
}

HttpAnswer show_resources(ApiDesk& desk, const ApiCall& call) {
  insights::SystemAsk ask = samples_in(call);
  if (backwards(ask)) return told_backwards();
  HttpAnswer refusal;
  const auto reader = samples_of_run(desk, call, ask.run, refusal);
  if (!reader) return refusal;
  const auto usage = insights::ask_usage(*reader, ask);
  if (!usage) return refused_ask(usage.error());
  WorkersOfNodes workers = workers_of(desk, call, *reader, ask.run);
  if (const auto status = reader->failure(); !status) return problem(status.error());
  ValueList items;
  for (const insights::UsageLine& line : *usage)
    items.push_back(ValueMap{{"node", line.node},
                             {"workers", worker_list(workers[line.node])},
                             {"what", line.what},
                             {"unit", line.unit},
                             {"samples", line.samples},
                             {"width_ms", line.width},
                             {"min", line.min},
                             {"mean", line.mean},
                             {"p50", line.p50},
                             {"p90", line.p90},
                             {"p95", line.p95},
                             {"p99", line.p99},
                             {"max", line.max}});
  return {
      200,
      core::to_json(ValueMap{{"items", std::move(items)}, {"as_of", told_at(desk, call)}}) + "\n"};
}

ApiParameter run_parameter() {
  ApiParameter run{"run", ParameterType::text, "its uid, or the beginning of it"};
  run.in_path = true;
  return run;
}

std::vector<ApiParameter> sample_parameters(bool named) {
  std::vector<ApiParameter> out{
      run_parameter(),
      {"node", ParameterType::regex, "regular expression of the node's whole name"}};
  if (named)
    out.push_back({"name", ParameterType::regex,
                   "regular expression of a whole series, such as system.cpu.busy\\{.*\\}"});
  out.push_back(integer_parameter(
      "from", "first millisecond, UTC; the first sample of the run if not given", 0, kLatestMilli));
  out.push_back(integer_parameter("to", "the millisecond behind the last one", 0, kLatestMilli));
  out.push_back(moment_parameter());
  return out;
}

std::vector<ApiParameter> curve_parameters() {
  std::vector<ApiParameter> out = sample_parameters(true);
  out.push_back(integer_parameter(
      "points", "at most so many points of each series; 600 if not given", 1, kMostSystemPoints));
  out.push_back(
      integer_parameter("limit", "at most so many series; 64 if not given", 1, kMostSystemSeries));
  return out;
}

std::vector<ApiParameter> core_parameters() {
  std::vector<ApiParameter> out = sample_parameters(true);
  out[2].meaning += "; cores and GPUs if not given";
  out.push_back(integer_parameter("max_rows",
                                  "at most so many; then neighbours are one row. 400 if not given",
                                  1, kMostCoreRows));
  out.push_back(
      integer_parameter("cols", "at most so many; 600 if not given", 1, kMostCoreColumns));
  ApiParameter agg{"agg", ParameterType::choice,
                   "how the samples of a cell become one; mean if not given"};
  agg.choices = {"mean", "max", "min"};
  out.push_back(agg);
  ApiParameter format{"format", ParameterType::choice, "json if not given"};
  format.choices = {"json", "bin"};
  out.push_back(format);
  return out;
}

}  // namespace

std::vector<ApiRoute> system_routes(ApiDesk& desk) {
  return {{"GET",
           "/api/v1/runs/{run}/nodes",
           ApiRole::viewer,
           "List the nodes of a run, and what their agents have sampled",
           [&desk](const ApiCall& call) { return show_nodes(desk, call); },
           {run_parameter(), moment_parameter()},
           {},
           {{200, "the nodes", "RunNodes"}}},
          {"GET",
           "/api/v1/runs/{run}/system",
           ApiRole::viewer,
           "Show samples of the nodes of a run over time",
           [&desk](const ApiCall& call) { return show_system(desk, call); },
           curve_parameters(),
           {},
           {{200, "the series", "SystemSeries"},
            {304, "you have them already: If-None-Match names their ETag"}}},
          {"GET",
           "/api/v1/runs/{run}/system/heatmap",
           ApiRole::viewer,
           "Show all cores and GPUs of the nodes of a run over time",
           [&desk](const ApiCall& call) { return show_cores(desk, call); },
           core_parameters(),
           {},
           {{200, "the grid", "CoreMap"}}},
          {"GET",
           "/api/v1/runs/{run}/resources",
           ApiRole::viewer,
           "Show how much of its nodes a run has used: least, percentiles, greatest",
           [&desk](const ApiCall& call) { return show_resources(desk, call); },
           sample_parameters(false),
           {},
           {{200, "a line for each node and resource", "Resources"}}}};
}

}  // namespace tocsin::app
