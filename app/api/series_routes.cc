#include "app/api/series_routes.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "app/api/past_run.h"
#include "app/api/restart_rows.h"
#include "app/api/series_asking.h"
#include "app/api/series_csv.h"
#include "app/serve/entity_tag.h"
#include "app/serve/problem.h"
#include "core/json.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using core::Value;
using core::ValueList;
using core::ValueMap;

constexpr std::int64_t kMostCurvePoints = 10'000;
constexpr std::int64_t kUsualPoints = 1000;
constexpr std::int64_t kMostSmooth = 1'000'000;
constexpr double kMicrosOfAMilli = 1000;
constexpr std::size_t kShortUid = 8;

std::string wall_text(double micros) {
  return core::to_rfc3339(core::WallTime(std::chrono::duration_cast<core::WallTime::duration>(
      std::chrono::microseconds(static_cast<std::int64_t>(micros)))));
}

// A step or a time.
core::Status read_bound(const UrlQuery& query, std::string_view name,
                        std::optional<std::int64_t>& step, std::optional<std::int64_t>& micros) {
  const auto text = query.value(name);
  if (!text) return core::ok();
  std::int64_t number = 0;
  const char* last = text->data() + text->size();
  const auto [end, failure] = std::from_chars(text->data(), last, number);
  if (failure == std::errc{} && end == last && number >= 0) {
    step = number;
    return core::ok();
  }
  const auto time = core::parse_rfc3339(*text);
  if (!time)
    return core::invalid_argument(std::string(name) +
                                  ": expected a step or a time such as 2026-01-02T03:04:05Z, "
                                  "found \"" +
                                  core::visible(*text, 100) + "\"");
  micros = std::chrono::duration_cast<std::chrono::microseconds>(time->time_since_epoch()).count();
  return core::ok();
}

// What all these routes are asked.
insights::SeriesAsk ask_of(const ApiCall& call) {
  insights::SeriesAsk out;
  out.name = std::string(call.query.value("name").value_or(".*"));
  out.worker = std::string(call.query.value("worker").value_or(".*"));
  if (const auto mode = call.query.value("mode")) out.mode = core::mode_from(*mode);
  return out;
}

insights::Together together_in(const UrlQuery& query) {
  using insights::Together;
  const auto text = query.value("agg");
  if (text == "min") return Together::min;
  if (text == "max") return Together::max;
  if (text == "mean") return Together::mean;
  if (text == "sum") return Together::sum;
  return text == "spread" ? Together::spread : Together::each;
}

const char* kind_word(insights::FamilyKind kind) {
  if (kind == insights::FamilyKind::tensor) return "tensor";
  return kind == insights::FamilyKind::clock ? "clock" : "scalar";
}

ValueMap line_head(const insights::SeriesLine& line, bool together) {
  return ValueMap{{"name", line.name.text},
                  {"kind", kind_word(line.name.kind)},
                  {"mode", std::string(core::to_string(line.of.mode))},
                  {"worker", together ? Value() : Value(line.of.worker)},
                  {"rank", together ? Value() : Value(line.of.rank)},
                  {"workers", line.workers},
                  {"attempt", line.of.attempt},
                  {"superseded", line.superseded},
                  {"role", std::string(core::to_string(line.name.role))},
                  {"unit", line.name.unit.empty() ? Value() : Value(line.name.unit)},
                  {"stored", line.stored},
                  {"repeats", line.of.repeats}};
}

// Columns of equal length; with one step per bucket the numbers of a bucket are one.
Value curve_value(const insights::SeriesLine& line, bool single, bool together, bool smooth) {
  ValueMap out = line_head(line, together);
  ValueList x0;
  ValueList n;
  ValueList first;
  ValueList last;
  ValueList min;
  ValueList max;
  ValueList mean;
  ValueList dt;
  ValueList soft;
  ValueList bad;
  std::optional<double> t0;
  for (const auto& point : line.points) {
    const insights::Bucket& value = point.value;
    const auto number = [&](double of) { return value.n == 0 ? Value() : Value(of); };
    if (value.bad() > 0)
      bad.push_back(ValueList{static_cast<std::int64_t>(x0.size()), std::int64_t{value.nan},
                              std::int64_t{value.posinf}, std::int64_t{value.neginf}, value.bad_x});
    x0.push_back(point.x);
    n.push_back(std::int64_t{value.n});
    first.push_back(number(value.first));
    mean.push_back(number(value.mean()));
    if (!single) {
      last.push_back(number(value.last));
      min.push_back(number(value.min));
      max.push_back(number(value.max));
    }
    if (point.time && !t0) t0 = point.time;
    dt.push_back(point.time ? Value(std::round((*point.time - *t0) / kMicrosOfAMilli)) : Value());
    if (smooth) soft.push_back(point.smooth ? Value(*point.smooth) : Value());
  }
  out.emplace_back("x0", std::move(x0));
  out.emplace_back("t0", t0 ? Value(wall_text(*t0)) : Value());
  out.emplace_back("dt", std::move(dt));
  if (single) {
    out.emplace_back("value", std::move(first));
  } else {
    out.emplace_back("n", std::move(n));
    out.emplace_back("min", std::move(min));
    out.emplace_back("max", std::move(max));
    out.emplace_back("first", std::move(first));
    out.emplace_back("last", std::move(last));
    out.emplace_back("mean", std::move(mean));
  }
  if (smooth) out.emplace_back("smooth", std::move(soft));
  out.emplace_back("bad", std::move(bad));
  return out;
}

// How many values a series has counts those behind the range too, which still come.
ValueMap without_counts(const ValueMap& body) {
  ValueMap out;
  for (const auto& [name, value] : body) {
    if (name == "lost" || name == "refused") continue;
    const auto* series = core::as<ValueList>(value);
    if (name != "series" || series == nullptr) {
      out.emplace_back(name, value);
      continue;
    }
    ValueList lines;
    for (const Value& line : *series) {
      ValueMap one = *core::as<ValueMap>(line);
      std::erase_if(one, [](const auto& field) { return field.first == "stored"; });
      lines.emplace_back(std::move(one));
    }
    out.emplace_back(name, std::move(lines));
  }
  return out;
}

// Of the lanes that such curves come by.
ValueList loss_values(const std::vector<insights::LossLine>& losses, bool tensors) {
  ValueList out;
  const auto step = [](const std::optional<std::int64_t>& of) { return of ? Value(*of) : Value(); };
  for (const insights::LossLine& one : losses) {
    const bool mine = tensors ? one.lane == "statistics" : one.lane == "scalars";
    if (!mine && !one.lane.empty() && one.lane != "control") continue;
    out.push_back(ValueMap{{"lane", one.lane.empty() ? Value() : Value(one.lane)},
                           {"reason", one.reason},
                           {"workers", one.workers},
                           {"frames", one.frames},
                           {"values", one.values},
                           {"first_step", step(one.first_step)},
                           {"last_step", step(one.last_step)}});
  }
  return out;
}

// Which series, and of which steps or times. nullopt: `refusal` says why.
std::optional<insights::SeriesAsk> asked_range(const ApiCall& call, HttpAnswer& refusal) {
  insights::SeriesAsk ask = ask_of(call);
  const auto statistic = call.query.value("stat");
  if (statistic) {
    ask.kinds = {insights::FamilyKind::tensor};
    ask.column = *insights::tensor_column_of(*statistic);
  }
  for (const char* name : {"from", "to"}) {
    const bool from = std::string_view(name) == "from";
    if (const auto good = read_bound(call.query, name, from ? ask.from : ask.to,
                                     from ? ask.from_time : ask.to_time);
        !good) {
      refusal = problem(400, "invalid-parameter", good.error().message, name);
      return std::nullopt;
    }
  }
  if (!ask.from || !ask.to || *ask.from < *ask.to) return ask;
  refusal = problem(400, "invalid-parameter", "to: expected a step behind from", "to");
  return std::nullopt;
}

// Every value: what puts values together needs to be told how many points that makes.
HttpAnswer send_every_value(ApiDesk& desk, const ApiCall& call, const insights::SeriesAsk& ask,
                            CsvTables& tables, const std::string& file) {
  for (const char* name : {"agg", "smooth"}) {
    if (call.query.value(name))
      return problem(400, "invalid-parameter",
                     std::string(name) +
                         ": a table of every value has each worker's own, as they are; give points",
                     name);
  }
  auto walk = insights::RowWalk::begin([&desk] { return desk.curves.reader(); }, ask);
  if (walk) return tables.open(std::move(*walk), file);
  return walk.error().code == core::Code::invalid_argument ? refused_ask(walk.error())
                                                           : problem(walk.error());
}

// A time of which nothing is known, or that has not come.
std::optional<HttpAnswer> refuse_moment(ApiDesk& desk, const std::string& uid, core::WallTime at) {
  if (const auto past = check_moment(at, desk.clock.now()); !past)
    return problem(400, "invalid-parameter", past.error().message, "at");
  auto store = desk.insights.reader();
  if (!store) return problem(store.error());
  const auto run = (*store)->run(uid);
  const auto micros =
      std::chrono::duration_cast<std::chrono::microseconds>(at.time_since_epoch()).count();
  if (!run || !run->started || micros >= *run->started) return std::nullopt;
  return problem(404, "not-found",
                 "at: this run had not started at " + core::to_rfc3339(at) + "; it started at " +
                     wall_text(static_cast<double>(*run->started)),
                 "at");
}

HttpAnswer show_series(ApiDesk& desk, const ApiCall& call, CsvTables& tables) {
  HttpAnswer refusal;
  auto asked = asked_range(call, refusal);
  if (!asked) return refusal;
  insights::SeriesAsk& ask = *asked;
  const auto reader = series_of_run(desk, call, ask.run, refusal);
  if (!reader) return refusal;
  if (const auto at = moment_of(call)) {
    if (auto refused = refuse_moment(desk, ask.run, *at)) return std::move(*refused);
    ask.until =
        std::chrono::duration_cast<std::chrono::microseconds>(at->time_since_epoch()).count();
  }
  const bool csv = call.query.value("format") == "csv";
  const std::string file = "series-" + ask.run.substr(0, kShortUid) + ".csv";
  if (csv && !call.query.value("points")) return send_every_value(desk, call, ask, tables, file);
  ask.points = number_in(call.query, "points", kUsualPoints);
  ask.smooth = number_in(call.query, "smooth", 0);
  ask.together = together_in(call.query);
  const bool together = ask.together != insights::Together::each;
  const auto answer = insights::ask_series(*reader, ask);
  if (!answer) return refused_ask(answer.error());
  if (const auto status = reader->failure(); !status) return problem(status.error());
  if (csv) return buckets_as_csv(*answer, together, ask.smooth > 1, file);
  ValueList series;
  for (const auto& line : answer->lines)
    series.push_back(curve_value(line, answer->level == 0 && !together, together, ask.smooth > 1));
  ValueMap body{{"x", "step"},
                {"level", answer->level},
                {"width", std::int64_t{1} << answer->level},
                {"from", answer->from},
                {"to", answer->to},
                {"rows_from", answer->rows_from > 0 ? Value(answer->rows_from) : Value()},
                {"series", std::move(series)},
                {"left_out", static_cast<std::int64_t>(answer->left_out)}};
  body.emplace_back("lost",
                    loss_values(reader->losses(ask.run), call.query.value("stat").has_value()));
  body.emplace_back("refused", reader->gaps(ask.run).refused);
  const auto restarts = insights::ask_restarts(*reader, ask);
  if (!restarts) return refused_ask(restarts.error());
  body.emplace_back("restarts", restart_rows(desk, ask.run, *restarts));
  const std::string meaning = answer->settled ? core::to_json(without_counts(body)) : "";
  body.emplace_back("as_of", core::to_rfc3339(moment_of(call).value_or(desk.clock.now())));
  HttpAnswer out{200, core::to_json(body) + "\n"};
  if (answer->settled) let_keep(call.request, meaning, out);
  return out;
}

std::vector<ApiParameter> series_parameters() {
  std::vector<ApiParameter> out = selecting_parameters();
  out.push_back({"from", ParameterType::text, "first step, or a time"});
  out.push_back({"to", ParameterType::text, "the step or time behind the last one"});
  out.push_back(integer_parameter(
      "points", "at most so many points of each series; 1000 if not given", 1, kMostCurvePoints));
  out.push_back(
      integer_parameter("smooth", "also the exponential mean over so many steps", 0, kMostSmooth));
  ApiParameter agg{"agg", ParameterType::choice, "how series of several workers become one"};
  agg.choices = {"min", "max", "mean", "sum", "spread"};
  out.push_back(agg);
  ApiParameter stat = statistic_parameter();
  stat.meaning = "of tensors this statistic, in place of scalars";
  out.push_back(stat);
  out.push_back(moment_parameter());
  ApiParameter format{"format", ParameterType::choice,
                      "json if not given; csv without points has every value"};
  format.choices = {"json", "csv"};
  out.push_back(format);
  return out;
}

}  // namespace

std::vector<ApiRoute> series_routes(ApiDesk& desk) {
  return {{"GET",
           "/api/v1/runs/{run}/series",
           ApiRole::viewer,
           "Show curves of a run: scalars, the seconds of its steps, statistics of tensors",
           [&desk, tables = std::make_shared<CsvTables>()](const ApiCall& call) {
             return show_series(desk, call, *tables);
           },
           series_parameters(),
           {},
           {{200, "the series", "Series"},
            {200, "the same as a table (format=csv)", "Text", kCsvType},
            {304, "you have them already: If-None-Match names their ETag"}}}};
}

}  // namespace tocsin::app
