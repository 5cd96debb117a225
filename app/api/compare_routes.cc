#include "app/api/compare_routes.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "app/api/series_asking.h"
#include "app/api/sibling_band.h"
#include "app/serve/problem.h"
#include "core/json.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using core::Value;
using core::ValueList;
using core::ValueMap;

constexpr std::size_t kMostCompared = 8;
constexpr std::size_t kMostSiblings = 50;
constexpr std::size_t kMostRunsRead = 20'000;
constexpr std::int64_t kMostComparePoints = 2000;
constexpr std::int64_t kUsualComparePoints = 600;
constexpr std::int64_t kUsualInARow = 10;
constexpr std::int64_t kMostInARow = 1000;
constexpr std::size_t kMostLabelText = std::size_t{1} << 20U;

struct CompareSight {
  std::unique_ptr<insights::EventReader> events;
  std::unique_ptr<insights::SeriesReader> series;
  std::vector<insights::RunLine> runs, siblings;
};

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    if (comma != 0) out.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return out;
}

// A regular expression that fits this name only.
std::string exact_name(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (std::string_view("\\.+*?()|[]{}^$").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

// Completed runs of the first run's job, the newest first. Runs without a job have nothing in common.
std::vector<insights::RunLine> siblings_of(CompareSight& sight) {
  std::vector<insights::RunLine> out;
  if (sight.runs.front().job.empty()) return out;
  for (insights::RunLine& run : sight.events->runs_since(0, kMostRunsRead)) {
    const bool compared = std::any_of(sight.runs.begin(), sight.runs.end(),
                                      [&](const auto& one) { return one.uid == run.uid; });
    if (compared || run.job != sight.runs.front().job || run.phase != "ended" ||
        run.outcome != "completed")
      continue;
    out.push_back(std::move(run));
    if (out.size() == kMostSiblings) break;
  }
  return out;
}

std::optional<CompareSight> look_at_runs(ApiDesk& desk, const ApiCall& call, HttpAnswer& refusal) {
  CompareSight out;
  const auto asked = words_of(call.query.value("runs").value_or(""));
  if (asked.empty() || asked.size() > kMostCompared) {
    refusal = problem(400, "invalid-parameter",
                      "runs: expected the uids of 1 to " + std::to_string(kMostCompared) +
                          " runs, separated by commas",
                      "runs");
    return std::nullopt;
  }
  if (!call.query.value("name")) {
    refusal = problem(400, "invalid-parameter", "name: expected the name of a curve, such as loss",
                      "name");
    return std::nullopt;
  }
  auto events = desk.insights.reader();
  auto series = desk.curves.reader();
  if (!events || !series) {
    refusal = problem(events ? series.error() : events.error());
    return std::nullopt;
  }
  out.events = std::move(*events);
  out.series = std::move(*series);
  for (const std::string& one : asked) {
    auto line = out.events->run(one);
    if (!line) {
      refusal = problem(
          {core::Code::not_found, "runs: no run, or more than one, has a uid that begins with \"" +
                                      core::visible(one, 100) + "\""});
      return std::nullopt;
    }
    out.runs.push_back(std::move(*line));
  }
  out.siblings = siblings_of(out);
  if (const auto status = out.events->failure(); !status) {
    refusal = problem(status.error());
    return std::nullopt;
  }
  return out;
}

// Of the run's newest client; several workers as their mean.
RunValues values_of(const insights::SeriesAnswer& answer) {
  RunValues out;
  if (answer.lines.empty()) return out;
  for (const insights::SeriesPoint& point : answer.lines.front().points) {
    if (point.value.bad() > 0) {
      out[point.x] = std::nullopt;
    } else if (point.value.n > 0) {
      out[point.x] = point.value.mean();
    }
  }
  return out;
}

std::map<std::string, std::string> labels_of(const insights::RunLine& run) {
  std::map<std::string, std::string> out;
  const auto labels = core::parse_json(run.labels, kMostLabelText);
  const auto* members = labels ? core::as<ValueMap>(*labels) : nullptr;
  if (members == nullptr) return out;
  for (const auto& [name, value] : *members) {
    const auto* text = core::as<std::string>(value);
    out[name] = text != nullptr ? *text : core::to_json(value);
  }
  return out;
}

// Labels that are not the same of all runs and siblings.
ValueList label_differences(const CompareSight& sight) {
  std::set<std::string> names;
  std::vector<std::map<std::string, std::string>> runs;
  std::vector<std::map<std::string, std::string>> siblings;
  for (const auto& run : sight.runs) runs.push_back(labels_of(run));
  for (const auto& run : sight.siblings) siblings.push_back(labels_of(run));
  for (const auto* group : {&runs, &siblings}) {
    for (const auto& labels : *group) {
      for (const auto& label : labels) names.insert(label.first);
    }
  }
  const auto value_in = [](const auto& labels, const std::string& name) {
    const auto found = labels.find(name);
    return found == labels.end() ? Value() : Value(found->second);
  };
  ValueList out;
  for (const std::string& name : names) {
    ValueList values;
    std::set<std::string> seen;
    for (const auto& labels : runs) {
      values.push_back(value_in(labels, name));
      seen.insert(core::to_json(values.back()));
    }
    std::map<std::string, std::int64_t> counted;
    std::int64_t without = 0;
    for (const auto& labels : siblings) {
      const auto found = labels.find(name);
      if (found == labels.end()) ++without;
      if (found != labels.end()) ++counted[found->second];
      seen.insert(core::to_json(value_in(labels, name)));
    }
    if (seen.size() < 2) continue;
    ValueList others;
    for (const auto& [value, count] : counted)
      others.push_back(ValueMap{{"value", value}, {"runs", count}});
    if (without > 0) others.push_back(ValueMap{{"value", Value()}, {"runs", without}});
    out.push_back(
        ValueMap{{"label", name}, {"values", std::move(values)}, {"siblings", std::move(others)}});
  }
  return out;
}

Value band_value(const SiblingBand& band) {
  if (band.empty()) return {};
  ValueList x0;
  ValueList p5;
  ValueList p50;
  ValueList p95;
  ValueList siblings;
  for (const auto& [x, bucket] : band) {
    x0.push_back(x);
    p5.push_back(bucket.p5);
    p50.push_back(bucket.p50);
    p95.push_back(bucket.p95);
    siblings.push_back(bucket.siblings);
  }
  return ValueMap{{"x0", std::move(x0)},
                  {"p5", std::move(p5)},
                  {"p50", std::move(p50)},
                  {"p95", std::move(p95)},
                  {"siblings", std::move(siblings)}};
}

HttpAnswer compare_with_siblings(ApiDesk& desk, const ApiCall& call) {
  HttpAnswer refusal;
  auto sight = look_at_runs(desk, call, refusal);
  if (!sight) return refusal;
  insights::SeriesAsk ask;
  const std::string name(*call.query.value("name"));
  ask.name = exact_name(name);
  ask.mode = core::mode_from(call.query.value("mode").value_or("train"));
  ask.points = number_in(call.query, "points", kUsualComparePoints);
  ask.together = insights::Together::mean;
  // All in buckets of the same width, which begin at the same steps: those of the runs together.
  std::optional<std::int64_t> from;
  std::int64_t to = 0;
  for (const auto& run : sight->runs) {
    ask.run = run.uid;
    const auto answer = insights::ask_series(*sight->series, ask);
    if (!answer) return refused_ask(answer.error());
    if (answer->lines.empty()) continue;
    from = std::min(from.value_or(answer->from), answer->from);
    to = std::max(to, answer->to);
  }
  ask.from = from.value_or(0);
  ask.to = std::max(*ask.from + 1, to);
  std::int64_t level = 0;
  const auto ask_run = [&](const std::string& uid) {
    ask.run = uid;
    const auto answer = insights::ask_series(*sight->series, ask);
    if (!answer) return RunValues();
    level = answer->level;
    return values_of(*answer);
  };
  std::vector<RunValues> runs;
  for (const auto& run : sight->runs) runs.push_back(ask_run(run.uid));
  std::vector<RunValues> siblings;
  ValueList sibling_uids;
  for (const auto& run : sight->siblings) {
    RunValues values = ask_run(run.uid);
    if (values.empty()) continue;
    siblings.push_back(std::move(values));
    sibling_uids.emplace_back(run.uid);
  }
  if (const auto status = sight->series->failure(); !status) return problem(status.error());
  const SiblingBand band = band_of(siblings);
  const std::int64_t in_a_row = number_in(call.query, "in_a_row", kUsualInARow);
  ValueList items;
  for (std::size_t at = 0; at < runs.size(); ++at) {
    const auto left = leaves_band(band, runs[at], in_a_row);
    items.push_back(ValueMap{{"uid", sight->runs[at].uid},
                             {"job", sight->runs[at].job},
                             {"points", static_cast<std::int64_t>(runs[at].size())},
                             {"leaves_at", left ? Value(*left) : Value()}});
  }
  return {200, core::to_json(ValueMap{{"job", sight->runs.front().job},
                                      {"name", name},
                                      {"mode", std::string(core::to_string(*ask.mode))},
                                      {"width", std::int64_t{1} << level},
                                      {"in_a_row", in_a_row},
                                      {"runs", std::move(items)},
                                      {"siblings", std::move(sibling_uids)},
                                      {"band", band_value(band)},
                                      {"differences", label_differences(*sight)},
                                      {"as_of", core::to_rfc3339(desk.clock.now())}}) +
                   "\n"};
}

constexpr std::string_view kCompareSchemas =
    R"json({"Comparison":{"type":"object","properties":{"job":{"type":"string"},
   "name":{"type":"string"},"mode":{"type":"string"},"width":{"type":"integer",
   "description":"steps of a bucket"},"in_a_row":{"type":"integer"},"runs":{"type":"array",
   "items":{"type":"object","properties":{"uid":{"type":"string"},"job":{"type":"string"},
   "points":{"type":"integer"},"leaves_at":{"type":"integer","nullable":true,
   "description":"first step of the first of in_a_row successive buckets outside p5 to p95"}},
   "required":["uid","job","points","leaves_at"],"additionalProperties":false}},
   "siblings":{"type":"array","items":{"type":"string"},
   "description":"completed runs of the job that have the curve, the newest 50 at most"},
   "band":{"type":"object","nullable":true,
   "description":"null: fewer than three siblings have a value in any bucket","properties":{
   "x0":{"type":"array","items":{"type":"integer"}},
   "p5":{"$ref":"#/components/schemas/CurveNumbers"},
   "p50":{"$ref":"#/components/schemas/CurveNumbers"},
   "p95":{"$ref":"#/components/schemas/CurveNumbers"},"siblings":{"type":"array","items":{
   "type":"integer"}}},"required":["x0","p5","p50","p95","siblings"],
   "additionalProperties":false},"differences":{"type":"array","items":{"type":"object",
   "properties":{"label":{"type":"string"},"values":{"type":"array","items":{"type":"string",
   "nullable":true}},"siblings":{"type":"array","items":{"type":"object","properties":{
   "value":{"type":"string","nullable":true},"runs":{"type":"integer"}},"required":["value",
   "runs"],"additionalProperties":false}}},"required":["label","values","siblings"],
   "additionalProperties":false}},"as_of":{"type":"string","format":"date-time"}},"required":[
   "job","name","mode","width","in_a_row","runs","siblings","band","differences","as_of"],
   "additionalProperties":false}})json";

}  // namespace

std::string_view compare_schemas() noexcept { return kCompareSchemas; }

std::vector<ApiRoute> compare_routes(ApiDesk& desk) {
  ApiParameter baseline{"baseline", ParameterType::choice,
                        "what they stand beside; job if not given"};
  baseline.choices = {"job"};
  ApiParameter mode{"mode", ParameterType::choice, "mode of the steps; train if not given"};
  mode.choices = {"global", "train", "eval", "predict"};
  return {
      {"GET",
       "/api/v1/compare",
       ApiRole::viewer,
       "Compare runs with the completed runs of their job",
       [&desk](const ApiCall& call) { return compare_with_siblings(desk, call); },
       {{"runs", ParameterType::text,
         "1 to 8 uids, or beginnings of them, separated by commas; the job is that of the first"},
        {"name", ParameterType::text, "whole name of the curve"},
        mode,
        baseline,
        integer_parameter("points", "at most so many buckets; 600 if not given", 1,
                          kMostComparePoints),
        integer_parameter("in_a_row",
                          "successive buckets outside the band that count as leaving it; 10 if "
                          "not given",
                          1, kMostInARow)},
       {},
       {{200, "the runs, the band, and where each run leaves it", "Comparison"}}}};
}

}  // namespace tocsin::app
