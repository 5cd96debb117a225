#include "app/api/histogram_routes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "app/api/series_asking.h"
#include "app/serve/problem.h"
#include "core/json.h"

namespace tocsin::app {
namespace {

using core::Value;
using core::ValueList;
using core::ValueMap;

constexpr std::int64_t kMostHistogramColumns = 1000;
constexpr std::int64_t kUsualHistogramColumns = 200;
constexpr std::int64_t kFewestBins = 8;
constexpr std::int64_t kMostBins = 512;
constexpr std::int64_t kUsualBins = 160;
constexpr std::int64_t kLastStep = std::int64_t{1} << 53;

insights::HistogramAsk histogram_in(const UrlQuery& query) {
  insights::HistogramAsk out;
  out.of.name = std::string(query.value("name").value_or(".*"));
  out.of.worker = std::string(query.value("worker").value_or(".*"));
  if (const auto mode = query.value("mode")) out.of.mode = core::mode_from(*mode);
  if (query.value("from")) out.from = number_in(query, "from", 0);
  if (query.value("to")) out.to = number_in(query, "to", 0);
  out.columns = number_in(query, "cols", kUsualHistogramColumns);
  out.rows = number_in(query, "rows", kUsualBins);
  return out;
}

// 2^(bucket / 2^scale), within what a number can be.
double edge_of(std::int64_t bucket, int scale) {
  const double power = std::ldexp(static_cast<double>(bucket), -scale);
  return std::min(std::exp2(power), std::numeric_limits<double>::max());
}

std::int64_t count_at(const insights::MagnitudeCounts& of, std::int64_t bucket) {
  if (bucket < of.first || bucket >= of.end()) return 0;
  return static_cast<std::int64_t>(of.counts[static_cast<std::size_t>(bucket - of.first)]);
}

Value bin_value(const insights::HistogramAnswer& answer, std::int64_t bucket, bool positive) {
  ValueList counts;
  for (const insights::HistogramColumn& column : answer.columns)
    counts.push_back(count_at(positive ? column.counts.positive : column.counts.negative, bucket));
  return ValueMap{{"sign", std::int64_t{positive ? 1 : -1}},
                  {"bucket", bucket},
                  {"above", edge_of(bucket, answer.scale)},
                  {"up_to", edge_of(bucket + 1, answer.scale)},
                  {"counts", std::move(counts)}};
}

ValueList bin_values(const insights::HistogramAnswer& answer) {
  ValueList out;
  for (std::int64_t at = answer.end; answer.positive && at-- > answer.first;)
    out.push_back(bin_value(answer, at, true));
  for (std::int64_t at = answer.first; answer.negative && at < answer.end; ++at)
    out.push_back(bin_value(answer, at, false));
  return out;
}

template <typename Of>
ValueList of_columns(const insights::HistogramAnswer& answer, Of&& of) {
  ValueList out;
  for (const insights::HistogramColumn& column : answer.columns) {
    const auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    out.push_back(
        static_cast<std::int64_t>(std::min(most, static_cast<std::uint64_t>(of(column)))));
  }
  return out;
}

HttpAnswer show_histogram(ApiDesk& desk, const ApiCall& call) {
  insights::HistogramAsk ask = histogram_in(call.query);
  if (ask.from && ask.to && *ask.from >= *ask.to)
    return problem(400, "invalid-parameter", "to: expected a step behind from", "to");
  HttpAnswer refusal;
  const auto reader = series_of_run(desk, call, ask.of.run, refusal);
  if (!reader) return refusal;
  const auto answer = insights::ask_histogram(*reader, ask);
  if (!answer) return refused_ask(answer.error());
  if (const auto status = reader->failure(); !status) return problem(status.error());
  using Column = insights::HistogramColumn;
  ValueList modes;
  for (const core::Mode mode : answer->modes)
    modes.emplace_back(std::string(core::to_string(mode)));
  const Value mode = answer->mode ? Value(std::string(core::to_string(*answer->mode))) : Value();
  const ValueMap body{
      {"mode", mode},
      {"modes", std::move(modes)},
      {"level", answer->level},
      {"width", std::int64_t{1} << answer->level},
      {"from", answer->from},
      {"to", answer->to},
      {"tensors", answer->tensors},
      {"left_out", answer->left_out},
      {"thinned", answer->thinned},
      {"histograms_gone", answer->gone},
      {"scale", std::int64_t{answer->scale}},
      {"rows", bin_values(*answer)},
      {"histograms", of_columns(*answer, [](const Column& one) { return one.histograms; })},
      {"elements", of_columns(*answer, [](const Column& one) { return one.counts.elements(); })},
      {"positive",
       of_columns(*answer, [](const Column& one) { return sum_of(one.counts.positive); })},
      {"zero", of_columns(*answer, [](const Column& one) { return one.counts.zero; })},
      {"negative",
       of_columns(*answer, [](const Column& one) { return sum_of(one.counts.negative); })},
      {"nan", of_columns(*answer, [](const Column& one) { return one.counts.nan; })},
      {"pos_inf", of_columns(*answer, [](const Column& one) { return one.counts.posinf; })},
      {"neg_inf", of_columns(*answer, [](const Column& one) { return one.counts.neginf; })},
      {"as_of", core::to_rfc3339(desk.clock.now())}};
  return {200, core::to_json(Value(body)) + "\n"};
}

std::vector<ApiParameter> histogram_parameters() {
  std::vector<ApiParameter> out = selecting_parameters();
  out.push_back(integer_parameter("from", "first step", 0, kLastStep));
  out.push_back(integer_parameter("to", "the step behind the last one", 0, kLastStep));
  out.push_back(integer_parameter("cols", "at most so many columns of steps; 200 if not given", 1,
                                  kMostHistogramColumns));
  out.push_back(integer_parameter("rows", "at most so many bins of values; 160 if not given",
                                  kFewestBins, kMostBins));
  return out;
}

}  // namespace

std::vector<ApiRoute> histogram_routes(ApiDesk& desk) {
  return {{"GET",
           "/api/v1/runs/{run}/histogram",
           ApiRole::viewer,
           "Show how the elements of tensors are spread over magnitudes, over the steps of a run",
           [&desk](const ApiCall& call) { return show_histogram(desk, call); },
           histogram_parameters(),
           {},
           {{200, "the bins", "Histogram"}}}};
}

}  // namespace tocsin::app
