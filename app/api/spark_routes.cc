#include "app/api/spark_routes.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "app/api/series_asking.h"
#include "app/serve/problem.h"
#include "core/json.h"

namespace tocsin::app {
namespace {

using core::Value;
using core::ValueList;
using core::ValueMap;

constexpr std::size_t kMostSparks = 64;  // runs of one question
constexpr std::int64_t kSparkPoints = 40;

std::vector<std::string> spark_uids(std::string_view text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    if (comma > at) out.emplace_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return out;
}

// As a regular expression that only this name fits.
std::string exactly_named(const std::string& name) {
  std::string out;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       static_cast<unsigned char>(c) >= 0x80;
    if (!plain) out += '\\';
    out += c;
  }
  return out;
}

/// The first loss that the run has logged.
std::optional<std::string> loss_of(insights::SeriesReader& reader, const std::string& run) {
  constexpr std::array kScalars{insights::FamilyKind::scalar};
  for (const insights::NameLine& name : reader.names(run, kScalars))
    if (name.role == core::Role::loss) return name.text;
  return std::nullopt;
}

Value spark_of(const std::string& run, const std::string& name,
               const insights::SeriesAnswer& answer) {
  // Of several attempts each has points of its own; where one ends another begins.
  std::map<std::int64_t, insights::Bucket> points;
  for (const insights::SeriesLine& line : answer.lines) {
    if (line.superseded) continue;
    for (const insights::SeriesPoint& point : line.points) {
      if (!point.value.empty()) points[point.x].append(point.value);
    }
  }
  ValueList x;
  ValueList mean;
  ValueList bad;
  Value last;
  for (const auto& [step, value] : points) {
    x.emplace_back(step);
    mean.emplace_back(value.n > 0 ? Value(value.mean()) : Value());
    bad.emplace_back(std::int64_t{value.bad()});
    last = value.n > 0 ? Value(value.last) : Value();
  }
  return ValueMap{{"run", run},
                  {"name", name},
                  {"width", std::int64_t{1} << answer.level},
                  {"x", std::move(x)},
                  {"mean", std::move(mean)},
                  {"bad", std::move(bad)},
                  {"last", std::move(last)}};
}

HttpAnswer list_sparks(ApiDesk& desk, const ApiCall& call) {
  const auto asked = spark_uids(call.query.value("runs").value_or(""));
  if (asked.empty() || asked.size() > kMostSparks) {
    return problem(400, "invalid-parameter",
                   "runs: expected the uids of 1 to " + std::to_string(kMostSparks) +
                       " runs, separated by commas",
                   "runs");
  }
  auto reader = desk.curves.reader();
  if (!reader) return problem(reader.error());
  ValueList items;
  for (const std::string& run : asked) {
    const auto name = loss_of(**reader, run);
    if (!name) continue;
    insights::SeriesAsk ask;
    ask.run = run;
    ask.kinds = {insights::FamilyKind::scalar};
    ask.name = exactly_named(*name);
    ask.mode = core::Mode::train;
    ask.points = kSparkPoints;
    ask.together = insights::Together::mean;
    const auto answer = insights::ask_series(**reader, ask);
    if (!answer) return problem(answer.error());
    items.push_back(spark_of(run, *name, *answer));
  }
  if (const auto status = (*reader)->failure(); !status) return problem(status.error());
  return {200, core::to_json(ValueMap{{"items", std::move(items)}}) + "\n"};
}

constexpr std::string_view kSparkSchemas =
    R"json({"Sparklines":{"type":"object","properties":{"items":{"type":"array","items":{"$ref":"#/components/schemas/Sparkline"}}},
   "required":["items"],"additionalProperties":false},
 "Sparkline":{"type":"object","properties":{"run":{"type":"string"},"name":{"type":"string"},
   "width":{"type":"integer","description":"steps of a point"},
   "x":{"type":"array","items":{"type":"integer"}},
   "mean":{"type":"array","description":"null: nothing finite is there","items":{"type":"number","nullable":true}},
   "bad":{"type":"array","description":"values that are not finite","items":{"type":"integer"}},
   "last":{"type":"number","nullable":true,"description":"null: the last point has nothing finite"}},
   "required":["run","name","width","x","mean","bad","last"],"additionalProperties":false}})json";

}  // namespace

std::string_view spark_schemas() noexcept { return kSparkSchemas; }

std::vector<ApiRoute> spark_routes(ApiDesk& desk) {
  return {{"GET",
           "/api/v1/sparklines",
           ApiRole::viewer,
           "Show the losses of up to 64 runs as curves of some forty points",
           [&desk](const ApiCall& call) { return list_sparks(desk, call); },
           {{"runs", ParameterType::text, "whole uids, separated by commas"}},
           {},
           {{200, "of the runs that have logged a loss", "Sparklines"}}}};
}

}  // namespace tocsin::app
