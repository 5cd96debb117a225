#include "app/api/heat_routes.h"

#include <optional>
#include <utility>

#include "app/api/heat_bytes.h"
#include "app/api/restart_rows.h"
#include "app/api/series_asking.h"
#include "app/serve/problem.h"
#include "core/json.h"

namespace tocsin::app {
namespace {

using core::Value;
using core::ValueList;
using core::ValueMap;

constexpr std::int64_t kMostHeatRows = 1000;
constexpr std::int64_t kUsualHeatRows = 400;
constexpr std::int64_t kMostHeatColumns = 2000;
constexpr std::int64_t kUsualHeatColumns = 600;
constexpr std::int64_t kMostTensorsShown = 2000;
constexpr std::int64_t kUsualTensorsShown = 500;
constexpr std::int64_t kGreatestStep = std::int64_t{1} << 53;

insights::TensorAsk tensors_in(const UrlQuery& query) {
  insights::TensorAsk out;
  out.name = std::string(query.value("name").value_or(".*"));
  out.worker = std::string(query.value("worker").value_or(".*"));
  if (const auto mode = query.value("mode")) out.mode = core::mode_from(*mode);
  return out;
}

insights::HeatValue value_in(const UrlQuery& query) {
  const auto agg = query.value("agg");
  if (agg == "min") return insights::HeatValue::min;
  return agg == "mean" ? insights::HeatValue::mean : insights::HeatValue::max;
}

insights::HeatAsk heat_in(const UrlQuery& query) {
  insights::HeatAsk out;
  out.of = tensors_in(query);
  out.column = *insights::tensor_column_of(query.value("stat").value_or("l2"));
  if (query.value("from")) out.from = number_in(query, "from", 0);
  if (query.value("to")) out.to = number_in(query, "to", 0);
  out.columns = number_in(query, "cols", kUsualHeatColumns);
  out.rows = number_in(query, "max_rows", kUsualHeatRows);
  const auto rows = query.value("rows");
  if (rows == "name") out.order = insights::HeatOrder::name;
  if (rows == "value") out.order = insights::HeatOrder::value;
  out.value = value_in(query);
  return out;
}

Value mode_value(const std::optional<core::Mode>& mode) {
  return mode ? Value(std::string(core::to_string(*mode))) : Value();
}

ValueMap row_head(const insights::HeatRow& row) {
  const auto bad = row.bad.empty() ? Value() : Value(row.bad.front().x);
  return ValueMap{{"name", row.first.text},
                  {"last", row.last.text},
                  {"folded", row.folded},
                  {"role", std::string(core::to_string(row.first.role))},
                  {"first_bad_step", bad}};
}

ValueList cell_values(const insights::HeatRow& row) {
  ValueList out;
  for (const auto& cell : row.cells) out.push_back(cell ? Value(*cell) : Value());
  return out;
}

ValueList bad_values(const insights::HeatRow& row) {
  ValueList out;
  for (const insights::HeatBad& bad : row.bad)
    out.push_back(ValueList{bad.column, std::int64_t{bad.nan}, std::int64_t{bad.posinf},
                            std::int64_t{bad.neginf}, bad.x});
  return out;
}

insights::RankHeatAsk rank_heat_in(const UrlQuery& query) {
  const insights::HeatAsk heat = heat_in(query);
  insights::RankHeatAsk out;
  out.of = heat.of;
  if (query.value("stat")) out.statistic = heat.column;
  out.from = heat.from;
  out.to = heat.to;
  out.columns = heat.columns;
  out.rows = heat.rows;
  out.value = heat.value;
  return out;
}

/// What is told beside the cells.
struct BesideCells {
  insights::RunGaps gaps;
  ValueList restarts;
};

// Restarts are those of the step clock: its series are few, and each attempt has one.
std::optional<BesideCells> beside_cells(ApiDesk& desk, insights::SeriesReader& reader,
                                        const std::string& run, HttpAnswer& refusal) {
  BesideCells out;
  out.gaps = reader.gaps(run);
  insights::SeriesAsk of;
  of.run = run;
  of.name = "step_seconds";
  of.kinds = {insights::FamilyKind::clock};
  const auto restarts = insights::ask_restarts(reader, of);
  if (!restarts) {
    refusal = refused_ask(restarts.error());
    return std::nullopt;
  }
  out.restarts = restart_rows(desk, run, *restarts);
  if (const auto status = reader.failure(); !status) {
    refusal = problem(status.error());
    return std::nullopt;
  }
  return out;
}

// `by_rank`: rows are ranks.
HttpAnswer grid_answer(ApiDesk& desk, const ApiCall& call, const insights::HeatAnswer& heat,
                       BesideCells beside, const insights::RankHeat* by_rank) {
  const bool bytes = call.query.value("format") == "bin";
  ValueList modes;
  for (const core::Mode mode : heat.modes) modes.emplace_back(std::string(core::to_string(mode)));
  ValueList rows;
  for (const insights::HeatRow& row : heat.rows) {
    ValueMap one = row_head(row);
    if (by_rank != nullptr) one.emplace_back("rank", by_rank->ranks[rows.size()]);
    if (!bytes) {
      one.emplace_back("cells", cell_values(row));
      one.emplace_back("bad", bad_values(row));
    }
    rows.emplace_back(std::move(one));
  }
  const std::string_view usual = by_rank != nullptr ? "value" : "l2";
  ValueMap head{{"stat", std::string(call.query.value("stat").value_or(usual))},
                {"mode", mode_value(heat.mode)},
                {"modes", std::move(modes)},
                {"level", heat.level},
                {"width", std::int64_t{1} << heat.level},
                {"from", heat.from},
                {"to", heat.to},
                {"tensors", heat.tensors},
                {"left_out", heat.left_out},
                {"refused", beside.gaps.refused},
                {"tensors_gone", beside.gaps.tensors_gone},
                {"restarts", std::move(beside.restarts)},
                {"rows", std::move(rows)},
                {"as_of", core::to_rfc3339(desk.clock.now())}};
  if (by_rank != nullptr) head.emplace_back("ranks", by_rank->count);
  if (bytes)
    return {200, heat_bytes(heat, std::move(head), call.query.value("scale") != "linear"),
            kColumnsType};
  return {200, core::to_json(Value(std::move(head))) + "\n"};
}

HttpAnswer show_rank_heat(ApiDesk& desk, const ApiCall& call) {
  insights::RankHeatAsk ask = rank_heat_in(call.query);
  if (!call.query.value("name"))
    return problem(400, "invalid-parameter",
                   "name: by=rank shows one name, or the names that fit; expected a name", "name");
  if (call.query.value("rows"))
    return problem(400, "invalid-parameter", "rows: with by=rank rows are in order of rank",
                   "rows");
  HttpAnswer refusal;
  const auto reader = series_of_run(desk, call, ask.of.run, refusal);
  if (!reader) return refusal;
  const auto heat = insights::ask_rank_heat(*reader, ask);
  if (!heat) return refused_ask(heat.error());
  auto beside = beside_cells(desk, *reader, ask.of.run, refusal);
  return beside ? grid_answer(desk, call, heat->grid, std::move(*beside), &*heat) : refusal;
}

HttpAnswer show_heat(ApiDesk& desk, const ApiCall& call) {
  insights::HeatAsk ask = heat_in(call.query);
  if (ask.from && ask.to && *ask.from >= *ask.to)
    return problem(400, "invalid-parameter", "to: expected a step behind from", "to");
  if (call.query.value("by") == "rank") return show_rank_heat(desk, call);
  HttpAnswer refusal;
  const auto reader = series_of_run(desk, call, ask.of.run, refusal);
  if (!reader) return refusal;
  const auto heat = insights::ask_heat(*reader, ask);
  if (!heat) return refused_ask(heat.error());
  auto beside = beside_cells(desk, *reader, ask.of.run, refusal);
  return beside ? grid_answer(desk, call, *heat, std::move(*beside), nullptr) : refusal;
}

ValueMap health_line(const insights::HealthLine& line) {
  return ValueMap{{"name", line.name.text},
                  {"role", std::string(core::to_string(line.name.role))},
                  {"shape", line.name.shape.empty() ? Value() : Value(line.name.shape)},
                  {"step", line.step},
                  {"elements", line.elements},
                  {"neg_inf", line.neginf},
                  {"negative", line.negative},
                  {"zero", line.zero},
                  {"positive", line.positive},
                  {"pos_inf", line.posinf},
                  {"nan", line.nan},
                  {"l2", line.l2},
                  {"usual_l2", line.usual_l2 ? Value(*line.usual_l2) : Value()},
                  {"first_bad_step", line.bad_at ? Value(*line.bad_at) : Value()}};
}

HttpAnswer show_health(ApiDesk& desk, const ApiCall& call) {
  insights::HealthAsk ask;
  ask.of = tensors_in(call.query);
  if (call.query.value("step")) ask.step = number_in(call.query, "step", 0);
  ask.most = static_cast<std::size_t>(number_in(call.query, "limit", kUsualTensorsShown));
  HttpAnswer refusal;
  const auto reader = series_of_run(desk, call, ask.of.run, refusal);
  if (!reader) return refusal;
  const auto health = insights::ask_health(*reader, ask);
  if (!health) return refused_ask(health.error());
  if (const auto status = reader->failure(); !status) return problem(status.error());
  ValueList items;
  for (const insights::HealthLine& line : health->lines) items.emplace_back(health_line(line));
  Value first;
  if (const auto& bad = health->first_bad)
    first = ValueMap{{"name", bad->name.text},
                     {"kind", bad->name.kind == insights::FamilyKind::tensor ? "tensor" : "scalar"},
                     {"role", std::string(core::to_string(bad->name.role))},
                     {"step", bad->step}};
  return {200, core::to_json(ValueMap{
                   {"mode", mode_value(health->mode)},
                   {"step", health->step ? Value(*health->step) : Value()},
                   {"tensors", health->tensors},
                   {"first_bad", std::move(first)},
                   {"rows_from", health->rows_from > 0 ? Value(health->rows_from) : Value()},
                   {"items", std::move(items)},
                   {"as_of", core::to_rfc3339(desk.clock.now())}}) +
                   "\n"};
}

ApiParameter choice(std::string name, std::string meaning, std::vector<std::string> choices) {
  ApiParameter out{std::move(name), ParameterType::choice, std::move(meaning)};
  out.choices = std::move(choices);
  return out;
}

std::vector<ApiParameter> heat_parameters() {
  std::vector<ApiParameter> out = selecting_parameters();
  ApiParameter stat = statistic_parameter();
  stat.meaning =
      "statistic of tensors; l2 if not given. With by=rank: values of scalars if not given";
  out.push_back(stat);
  out.push_back(choice("by", "what rows are; tensor if not given. With rank: of the names that fit",
                       {"tensor", "rank"}));
  out.push_back(integer_parameter("from", "first step", 0, kGreatestStep));
  out.push_back(integer_parameter("to", "the step behind the last one", 0, kGreatestStep));
  out.push_back(
      choice("rows", "order of the tensors; model if not given", {"model", "name", "value"}));
  out.push_back(integer_parameter("max_rows",
                                  "at most so many; then neighbours are one row. 400 if not given",
                                  1, kMostHeatRows));
  out.push_back(
      integer_parameter("cols", "at most so many; 600 if not given", 1, kMostHeatColumns));
  out.push_back(choice("agg", "how the values of a cell become one; max if not given",
                       {"max", "min", "mean"}));
  out.push_back(
      choice("scale", "of the bytes of format=bin; log10 if not given", {"log10", "linear"}));
  out.push_back(choice("format", "json if not given", {"json", "bin"}));
  return out;
}

std::vector<ApiParameter> health_parameters() {
  std::vector<ApiParameter> out = selecting_parameters();
  out.push_back(integer_parameter(
      "step", "tensors as they were then; the first bad step, else the newest, if not given", 0,
      kGreatestStep));
  out.push_back(integer_parameter("limit", "at most so many tensors; 500 if not given", 1,
                                  kMostTensorsShown));
  return out;
}

}  // namespace

std::vector<ApiRoute> heat_routes(ApiDesk& desk) {
  return {{"GET",
           "/api/v1/runs/{run}/heatmap",
           ApiRole::viewer,
           "Show one statistic of all tensors of a run over its steps, or one number of all ranks",
           [&desk](const ApiCall& call) { return show_heat(desk, call); },
           heat_parameters(),
           {},
           {{200, "the grid", "HeatMap"}}},
          {"GET",
           "/api/v1/runs/{run}/health",
           ApiRole::viewer,
           "Show what the elements of a run's tensors are at one step, and which was bad first",
           [&desk](const ApiCall& call) { return show_health(desk, call); },
           health_parameters(),
           {},
           {{200, "the tensors", "TensorHealth"}}}};
}

}  // namespace tocsin::app
