#include "app/api/span_routes.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "app/api/api_rows.h"
#include "app/api/series_asking.h"
#include "app/serve/problem.h"
#include "core/json.h"

namespace tocsin::app {
namespace {

using core::Value;
using core::ValueList;
using core::ValueMap;

constexpr std::int64_t kLatestMicro = std::int64_t{1} << 53;
constexpr std::int64_t kMostSteps = 1000;
constexpr std::int64_t kUsualLastSteps = 30;
constexpr std::int64_t kUsualRankSteps = 100;
constexpr std::int64_t kMostBarColumns = 4000;
constexpr std::int64_t kUsualBarColumns = 1000;
constexpr std::int64_t kMostSpanLanes = 512;
constexpr std::int64_t kUsualLanes = 64;
constexpr std::int64_t kUsualOperations = 10;
constexpr std::int64_t kMostOperationsShown = 500;
constexpr double kMicrosOfASecond = 1e6;

std::string micro_text(double micros) {
  return core::to_rfc3339(core::WallTime(std::chrono::duration_cast<core::WallTime::duration>(
      std::chrono::microseconds(static_cast<std::int64_t>(micros)))));
}
ValueList span_texts(const std::vector<std::string>& all) {
  ValueList out;
  for (const std::string& one : all) out.emplace_back(one);
  return out;
}
HttpAnswer answered_spans(ApiDesk& desk, ValueMap body) {
  body.emplace_back("as_of", core::to_rfc3339(desk.clock.now()));
  return {200, core::to_json(body) + "\n"};
}

// Bars are [microseconds behind `from`, microseconds, name, step, spans]; an instant has no length.
ValueMap lane_value(const insights::SpanLane& lane, std::int64_t from) {
  ValueList bars;
  for (const insights::SpanBar& bar : lane.bars)
    bars.push_back(ValueList{bar.start - static_cast<double>(from),
                             bar.instant ? 0.0 : bar.end - bar.start,
                             static_cast<std::int64_t>(bar.name), bar.step, bar.merged});
  ValueList shares;
  for (const insights::SpanShare& share : lane.shares)
    shares.push_back(ValueMap{{"name", static_cast<std::int64_t>(share.name)},
                              {"calls", share.calls},
                              {"seconds", share.seconds},
                              {"share", share.share}});
  return ValueMap{{"worker", lane.worker},   {"rank", lane.rank},
                  {"track", lane.track},     {"spans", lane.spans},
                  {"bars", std::move(bars)}, {"shares", std::move(shares)}};
}

HttpAnswer show_spans(ApiDesk& desk, const ApiCall& call) {
  insights::SpanAsk ask;
  ask.track = std::string(call.query.value("track").value_or(".*"));
  ask.worker = std::string(call.query.value("worker").value_or(".*"));
  if (call.query.value("from")) ask.from = number_in(call.query, "from", 0);
  if (call.query.value("to")) ask.to = number_in(call.query, "to", 0);
  if (ask.from && ask.to && *ask.from >= *ask.to)
    return problem(400, "invalid-parameter", "to: expected a time behind from", "to");
  ask.steps = number_in(call.query, "last", kUsualLastSteps);
  ask.columns = number_in(call.query, "cols", kUsualBarColumns);
  ask.lanes = static_cast<std::size_t>(number_in(call.query, "limit", kUsualLanes));
  HttpAnswer refusal;
  const auto reader = series_of_run(desk, call, ask.run, refusal);
  if (!reader) return refusal;
  const auto answer = insights::ask_spans(*reader, ask);
  if (!answer) return refused_ask(answer.error());
  const bool gone = reader->bulk_gone(ask.run);
  if (const auto status = reader->failure(); !status) return problem(status.error());
  ValueList lanes;
  for (const insights::SpanLane& lane : answer->lanes)
    lanes.emplace_back(lane_value(lane, answer->from));
  return answered_spans(desk, {{"from", answer->from},
                               {"to", answer->to},
                               {"names", span_texts(answer->names)},
                               {"tracks", span_texts(answer->tracks)},
                               {"workers", span_texts(answer->workers)},
                               {"lanes", std::move(lanes)},
                               {"left_out", static_cast<std::int64_t>(answer->left_out)},
                               {"cut", answer->cut},
                               {"spans_gone", gone}});
}

HttpAnswer show_steps(ApiDesk& desk, const ApiCall& call) {
  std::string uid;
  HttpAnswer refusal;
  const auto reader = series_of_run(desk, call, uid, refusal);
  if (!reader) return refusal;
  const auto steps =
      insights::ask_steps(*reader, uid, std::string(call.query.value("worker").value_or(".*")),
                          number_in(call.query, "last", kUsualLastSteps));
  if (!steps) return refused_ask(steps.error());
  if (const auto status = reader->failure(); !status) return problem(status.error());
  ValueList items;
  for (const insights::StepLine& line : *steps) {
    ValueList phases;
    for (const insights::StepPhase& phase : line.phases)
      phases.push_back(ValueMap{{"name", phase.name.empty() ? Value() : Value(phase.name)},
                                {"seconds", phase.median},
                                {"min", phase.min},
                                {"max", phase.max}});
    items.push_back(ValueMap{{"step", line.step},
                             {"ranks", line.ranks},
                             {"seconds", line.seconds},
                             {"phases", std::move(phases)}});
  }
  return answered_spans(desk, {{"items", std::move(items)}});
}

ValueMap rank_value(const insights::RankLine& rank, const std::vector<double>& late) {
  ValueList by_step;
  for (const double one : late) by_step.push_back(std::isnan(one) ? Value() : Value(one));
  return ValueMap{{"rank", rank.rank},
                  {"worker", rank.worker},
                  {"steps", rank.steps},
                  {"seconds", rank.seconds},
                  {"compute", rank.compute},
                  {"communication", rank.communication},
                  {"data_wait", rank.data_wait},
                  {"other", rank.other},
                  {"idle", rank.idle},
                  {"overlap", number_or_null(rank.overlap)},
                  {"lateness", number_or_null(rank.lateness)},
                  {"most_late", rank.most_late},
                  {"last_of", rank.last_of},
                  {"without", number_or_null(rank.without)},
                  {"late", std::move(by_step)}};
}

HttpAnswer show_ranks(ApiDesk& desk, const ApiCall& call) {
  insights::RankAsk ask;
  if (call.query.value("from")) ask.from = number_in(call.query, "from", 0);
  if (call.query.value("to")) ask.to = number_in(call.query, "to", 0);
  if (ask.from && ask.to && (*ask.from >= *ask.to || *ask.to - *ask.from > kMostSteps))
    return problem(400, "invalid-parameter", "to: expected 1 to 1000 steps behind from", "to");
  ask.steps = number_in(call.query, "last", kUsualRankSteps);
  if (ask.from && !ask.to) ask.to = *ask.from + ask.steps;
  if (ask.to && !ask.from) ask.from = std::max<std::int64_t>(0, *ask.to - ask.steps);
  HttpAnswer refusal;
  const auto reader = series_of_run(desk, call, ask.run, refusal);
  if (!reader) return refusal;
  const auto answer = insights::ask_ranks(*reader, ask);
  if (!answer) return refused_ask(answer.error());
  if (const auto status = reader->failure(); !status) return problem(status.error());
  ValueList items;
  for (std::size_t at = 0; at < answer->ranks.size(); ++at)
    items.emplace_back(rank_value(answer->ranks[at], answer->late[at]));
  return answered_spans(desk, {{"from", answer->from},
                               {"to", answer->to},
                               {"common", answer->common},
                               {"spans", answer->spans},
                               {"items", std::move(items)}});
}

// Microseconds.
struct LoopSum {
  ValueList attempts;
  double interrupted = 0;
  double reached = 0;
};

LoopSum sum_of(const std::vector<insights::LoopPart>& parts) {
  LoopSum out;
  for (const insights::LoopPart& part : parts) {
    if (out.reached > 0) out.interrupted += std::max(0.0, part.begin - out.reached);
    out.reached = std::max(out.reached, part.end);
    out.attempts.push_back(ValueMap{{"attempt", part.attempt},
                                    {"loop_start", micro_text(part.begin)},
                                    {"loop_end", micro_text(part.end)}});
  }
  return out;
}

// What was before the first step of the run is initialization, behind the last one finalization, and
// between two attempts nothing ran.
HttpAnswer show_phases(ApiDesk& desk, const ApiCall& call) {
  std::string uid;
  HttpAnswer refusal;
  const auto reader = series_of_run(desk, call, uid, refusal);
  if (!reader) return refusal;
  auto runs = desk.insights.reader();
  if (!runs) return problem(runs.error());
  const auto run = (*runs)->run(uid);
  const auto parts = insights::ask_loop(*reader, uid);
  if (const auto status = reader->failure(); !status) return problem(status.error());
  const double now =
      std::chrono::duration<double, std::micro>(desk.clock.now().time_since_epoch()).count();
  const auto time_of = [](const std::optional<std::int64_t>& micros) {
    return micros ? std::optional<double>(static_cast<double>(*micros)) : std::nullopt;
  };
  auto began = run ? time_of(run->started) : std::nullopt;
  auto ended = run ? time_of(run->ended) : std::nullopt;
  LoopSum loop = sum_of(parts);
  const double interrupted = loop.interrupted;
  const double reached = loop.reached;
  if (ended) ended = std::max(*ended, reached);  // the first worker that says so ends a run
  const auto text_of = [](const std::optional<double>& micros) {
    return micros ? Value(micro_text(*micros)) : Value();
  };
  const auto first = parts.empty() ? std::nullopt : std::optional<double>(parts.front().begin);
  if (began && first) began = std::min(*began, *first);  // it is told of once its first step runs
  const auto last = parts.empty() ? std::nullopt : std::optional<double>(reached);
  ValueMap body{{"started_at", text_of(began)}, {"ended_at", text_of(ended)}};
  body.emplace_back("loop_start", text_of(first));
  body.emplace_back("loop_end", text_of(last));
  const auto seconds = [](double micros) {
    return Value(std::max(0.0, micros) / kMicrosOfASecond);
  };
  const double end = ended.value_or(now);
  body.emplace_back("seconds", began ? seconds(end - *began) : Value());
  body.emplace_back("initialization", began && first ? seconds(*first - *began) : Value());
  body.emplace_back("training_loop", first ? seconds(*last - *first - interrupted) : Value());
  body.emplace_back("interrupted", seconds(interrupted));
  body.emplace_back("finalization", ended && last ? seconds(*ended - *last) : Value());
  body.emplace_back("attempts", std::move(loop.attempts));
  return answered_spans(desk, std::move(body));
}

HttpAnswer show_operations(ApiDesk& desk, const ApiCall& call) {
  std::string uid;
  HttpAnswer refusal;
  const auto reader = series_of_run(desk, call, uid, refusal);
  if (!reader) return refusal;
  const auto answer = insights::ask_operations(
      *reader, uid, static_cast<std::size_t>(number_in(call.query, "limit", kUsualOperations)));
  if (const auto status = reader->failure(); !status) return problem(status.error());
  ValueList items;
  for (const insights::OperationLine& line : answer.lines)
    items.push_back(ValueMap{{"device", line.device},
                             {"name", line.name},
                             {"calls", line.calls},
                             {"seconds", line.seconds},
                             {"share", line.share}});
  return answered_spans(
      desk, {{"spans", answer.spans}, {"cut", answer.cut}, {"items", std::move(items)}});
}

ApiParameter span_run() {
  ApiParameter run{"run", ParameterType::text, "its uid, or the beginning of it"};
  run.in_path = true;
  return run;
}
ApiParameter span_worker() {
  return {"worker", ParameterType::regex, "regular expression of the worker's whole name"};
}
ApiParameter last_parameter(std::int64_t usual) {
  return integer_parameter(
      "last", "the last so many steps; " + std::to_string(usual) + " if not given", 1, kMostSteps);
}

std::vector<ApiParameter> span_parameters() {
  return {span_run(),
          {"track", ParameterType::regex, "regular expression of the whole track, such as phase"},
          span_worker(),
          integer_parameter("from", "first microsecond, UTC; the last steps if not given", 0,
                            kLatestMicro),
          integer_parameter("to", "the microsecond behind the last one", 0, kLatestMicro),
          last_parameter(kUsualLastSteps),
          integer_parameter("cols",
                            "what is shorter than one of so many columns is merged; 1000 if "
                            "not given",
                            1, kMostBarColumns),
          integer_parameter("limit", "at most so many lanes; 64 if not given", 1, kMostSpanLanes)};
}

}  // namespace

std::vector<ApiRoute> span_routes(ApiDesk& desk) {
  constexpr std::int64_t kLatestStep = std::int64_t{1} << 53;
  return {{"GET",
           "/api/v1/runs/{run}/spans",
           ApiRole::viewer,
           "Show what the workers of a run did within a time, as bars and shares",
           [&desk](const ApiCall& call) { return show_spans(desk, call); },
           span_parameters(),
           {},
           {{200, "the lanes", "SpanLanes"}}},
          {"GET",
           "/api/v1/runs/{run}/steps",
           ApiRole::viewer,
           "Show what the last steps of a run spent their time on",
           [&desk](const ApiCall& call) { return show_steps(desk, call); },
           {span_run(), span_worker(), last_parameter(kUsualLastSteps)},
           {},
           {{200, "the steps", "StepPhases"}}},
          {"GET",
           "/api/v1/runs/{run}/ranks",
           ApiRole::viewer,
           "Show what each rank spent its time on, and how late it ended its steps",
           [&desk](const ApiCall& call) { return show_ranks(desk, call); },
           {span_run(), integer_parameter("from", "first step of training", 0, kLatestStep),
            integer_parameter("to", "the step behind the last one", 0, kLatestStep),
            last_parameter(kUsualRankSteps)},
           {},
           {{200, "the ranks", "RankTimes"}}},
          {"GET",
           "/api/v1/runs/{run}/phases",
           ApiRole::viewer,
           "Show how long a run initialized, trained, stood still and finished",
           [&desk](const ApiCall& call) { return show_phases(desk, call); },
           {span_run()},
           {},
           {{200, "the phases", "RunPhases"}}},
          {"GET",
           "/api/v1/runs/{run}/operations",
           ApiRole::viewer,
           "List the operations that took most time on GPUs and CPUs",
           [&desk](const ApiCall& call) { return show_operations(desk, call); },
           {span_run(), integer_parameter("limit", "at most so many of a device; 10 if not given",
                                          1, kMostOperationsShown)},
           {},
           {{200, "the operations", "Operations"}}}};
}

}  // namespace tocsin::app
