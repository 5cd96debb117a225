#include "app/api/hardware_routes.h"

#include <chrono>
#include <utility>

#include "app/api/past_run.h"
#include "app/api/series_asking.h"
#include "app/serve/problem.h"
#include "core/json.h"
#include "insights/series/hardware_query.h"

namespace tocsin::app {
namespace {

using core::Value;
using core::ValueList;
using core::ValueMap;
using insights::HardwareEvent;
using insights::HardwareFault;

constexpr std::int64_t kMostHardwareEvents = 1000;
constexpr std::int64_t kUsualHardwareEvents = 200;

core::WallTime moment_at(std::int64_t millis) {
  return core::WallTime(
      std::chrono::duration_cast<core::WallTime::duration>(std::chrono::milliseconds(millis)));
}

const char* fault_kind(HardwareFault fault) {
  switch (fault) {
    case HardwareFault::xid:
      return "xid";
    case HardwareFault::memory:
      return "memory";
    case HardwareFault::throttled:
      return "throttled";
    case HardwareFault::lost:
      return "lost";
  }
  return "xid";
}

// "GPU 3 of n7"; a part of a GPU has no number of its own.
std::string gpu_words(const HardwareEvent& event) {
  return (event.gpu >= 0 ? "GPU " + std::to_string(event.gpu) : "GPU " + event.device) + " of " +
         event.node;
}

std::string cause_words(const std::string& reason) {
  if (reason == "power") return "by its power limit";
  if (reason == "thermal") return "by heat";
  return reason == "hardware" ? "by the hardware" : "for " + reason;
}

// " for 2.5 s", " for 1m5s"; one sample has no length.
std::string span_words(const HardwareEvent& event) {
  if (event.last <= event.first) return "";
  const auto whole = std::chrono::milliseconds(event.last - event.first);
  if (whole >= std::chrono::minutes(1))
    return " for " + core::to_text(core::Duration(std::chrono::round<std::chrono::seconds>(whole)));
  const auto tenths = (whole.count() + 50) / 100;
  const std::string part = tenths % 10 == 0 ? "" : "." + std::to_string(tenths % 10);
  return " for " + std::to_string(tenths / 10) + part + " s";
}

std::string event_words(const HardwareEvent& event) {
  const std::string where = gpu_words(event);
  const std::string number = event.number ? " " + std::to_string(*event.number) : "";
  switch (event.kind) {
    case HardwareFault::xid:
      return event.count > 1 ? std::to_string(event.count) + " XIDs on " + where +
                                   (number.empty() ? "" : ", the newest" + number)
                             : "XID" + number + " on " + where;
    case HardwareFault::memory:
      return event.count > 1
                 ? std::to_string(event.count) + " uncorrected memory errors on " + where
                 : "uncorrected memory error on " + where;
    case HardwareFault::throttled:
      return where + " throttled " + cause_words(event.reason) + span_words(event);
    case HardwareFault::lost:
      return where + " lost by its driver" + span_words(event);
  }
  return where;
}

Value event_row(const HardwareEvent& event) {
  return ValueMap{{"kind", fault_kind(event.kind)},
                  {"time", core::to_rfc3339(moment_at(event.first))},
                  {"until", core::to_rfc3339(moment_at(event.last))},
                  {"step", event.step ? Value(*event.step) : Value()},
                  {"node", event.node},
                  {"gpu", event.gpu >= 0 ? Value(event.gpu) : Value()},
                  {"device", event.device},
                  {"count", event.count},
                  {"xid", event.number ? Value(*event.number) : Value()},
                  {"reason", event.reason.empty() ? Value() : Value(event.reason)},
                  {"text", event_words(event)}};
}

HttpAnswer list_hardware(ApiDesk& desk, const ApiCall& call) {
  const auto at = moment_of(call);
  const core::WallTime now = desk.clock.now();
  if (const auto past = check_moment(at.value_or(core::WallTime{}), now); !past)
    return problem(400, "invalid-parameter", past.error().message, "at");
  insights::HardwareAsk ask;
  ask.most = static_cast<std::size_t>(number_in(call.query, "limit", kUsualHardwareEvents));
  if (at) ask.to = core::nanoseconds(*at) / 1'000'000;
  HttpAnswer refusal;
  const auto reader = series_of_run(desk, call, ask.run, refusal);
  if (!reader) return refusal;
  const auto answer = insights::ask_hardware(*reader, ask);
  if (!answer) return refused_ask(answer.error());
  if (const auto status = reader->failure(); !status) return problem(status.error());
  ValueList items;
  for (const HardwareEvent& event : answer->events) items.push_back(event_row(event));
  return {200, core::to_json(ValueMap{{"items", std::move(items)},
                                      {"left_out", static_cast<std::int64_t>(answer->left_out)},
                                      {"as_of", core::to_rfc3339(at.value_or(now))}}) +
                   "\n"};
}

constexpr std::string_view kHardwareSchemas =
    R"json({"HardwareEvent":{"type":"object","properties":{"kind":{"type":"string","enum":["xid",
   "memory","throttled","lost"]},"time":{"type":"string","format":"date-time",
   "description":"of the first sample that told it"},"until":{"type":"string","format":"date-time",
   "description":"of the last one"},"step":{"type":"integer","nullable":true,
   "description":"of training, that was under way; null: the run has told no steps"},
   "node":{"type":"string"},"gpu":{"type":"integer","nullable":true,
   "description":"its place among the GPUs of the node; null: a part of one"},
   "device":{"type":"string"},"count":{"type":"integer",
   "description":"errors, or samples in which it was so"},"xid":{"type":"integer","nullable":true},
   "reason":{"type":"string","nullable":true},"text":{"type":"string"}},"required":["kind","time",
   "until","step","node","gpu","device","count","xid","reason","text"],"additionalProperties":false},
 "Hardware":{"type":"object","properties":{"items":{"type":"array",
   "items":{"$ref":"#/components/schemas/HardwareEvent"}},"left_out":{"type":"integer",
   "description":"older ones, beyond limit"},"as_of":{"type":"string","format":"date-time"}},
   "required":["items","left_out","as_of"],"additionalProperties":false}})json";

}  // namespace

std::string_view hardware_schemas() noexcept { return kHardwareSchemas; }

std::vector<ApiRoute> hardware_routes(ApiDesk& desk) {
  ApiParameter run{"run", ParameterType::text, "its uid, or the beginning of it"};
  run.in_path = true;
  return {{"GET",
           "/api/v1/runs/{run}/hardware",
           ApiRole::viewer,
           "List errors and throttling of the GPUs of a run's nodes, by time and by step",
           [&desk](const ApiCall& call) { return list_hardware(desk, call); },
           {run, integer_parameter("limit", "at most so many, the newest", 1, kMostHardwareEvents),
            moment_parameter()},
           {},
           {{200, "in order of time", "Hardware"}}}};
}

}  // namespace tocsin::app
