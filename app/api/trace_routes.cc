#include "app/api/trace_routes.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "app/api/trace_bytes.h"
#include "app/api/trace_objects.h"
#include "app/api/trace_rows.h"
#include "app/serve/problem.h"
#include "core/json.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using core::Value;
using core::ValueList;
using core::ValueMap;

constexpr int kMostTracesSent = 4;  // at a time
constexpr const char* kTraceType = "application/gzip";

/// What the handlers share.
struct TraceDesk {
  ApiDesk& desk;
  ingest::Transport& transport;
  TraceObjects objects;
  // The streams may outlive the route by a moment.
  std::shared_ptr<std::atomic<int>> open = std::make_shared<std::atomic<int>>(0);
};

struct RunTraces {
  core::RunUid run;
  std::vector<SentTrace> traces;
};

core::Result<RunTraces> traces_of_run(ApiDesk& desk, const ApiCall& call) {
  const std::string& asked = call.request.in_path.find("run")->second;
  auto store = desk.insights.reader();
  if (!store) return store.error();
  const auto line = (*store)->run(asked);
  const auto uid = line ? core::parse_run_uid(line->uid) : std::nullopt;
  RunTraces out;
  if (uid) out = {*uid, traces_of((*store)->events_of(line->uid))};
  if (const auto status = (*store)->failure(); !status) return status.error();
  if (uid) return out;
  return core::not_found("no run, or more than one, has a uid that begins with \"" +
                         core::visible(asked, 100) + "\"");
}

HttpAnswer list_traces(const TraceDesk& traces, const ApiCall& call) {
  const auto found = traces_of_run(traces.desk, call);
  if (!found) return problem(found.error());
  ValueList items;
  for (const SentTrace& trace : found->traces) items.push_back(trace_row(trace));
  return {200, core::to_json(ValueMap{{"items", std::move(items)},
                                      {"as_of", core::to_rfc3339(traces.desk.clock.now())}}) +
                   "\n"};
}

/// A trace of the run that the path names.
struct AskedTrace {
  core::RunUid run;
  SentTrace trace;
  TracePlace place;
};

core::Result<AskedTrace> asked_trace(const TraceDesk& traces, const ApiCall& call) {
  auto found = traces_of_run(traces.desk, call);
  if (!found) return found.error();
  const std::string& id = call.request.in_path.find("id")->second;
  const auto trace = std::find_if(found->traces.begin(), found->traces.end(),
                                  [&](const SentTrace& one) { return one.id == id; });
  if (trace == found->traces.end())
    return core::not_found("the run has sent no trace \"" + core::visible(id, 100) + "\"");
  auto place = find_trace(traces.transport, found->run, *trace, traces.desk.clock);
  if (!place) return place.error();
  return AskedTrace{found->run, std::move(*trace), std::move(*place)};
}

std::string fetching_line(const AskedTrace& of) {
  return "python3 -m tocsin.trace " + core::to_text(of.run) + " " + std::to_string(of.trace.step) +
         " --worker " + of.trace.worker;
}

HttpAnswer show_trace_place(const TraceDesk& traces, const ApiCall& call) {
  const auto found = asked_trace(traces, call);
  if (!found) return problem(found.error());
  std::string why;
  bool here = found->place.uri.empty();
  if (!here) {
    const auto object = traces.objects.open(found->run, found->trace, found->place);
    here = bool{object};
    if (!object) why = object.error().message;
  }
  return {200,
          core::to_json(ValueMap{
              {"id", found->trace.id},
              {"here", here},
              {"uri", here ? Value() : Value(found->place.uri)},
              {"why", why.empty() ? Value() : Value(core::visible(why, 600))},
              {"node", found->trace.node.empty() ? Value() : Value(found->trace.node)},
              {"bytes", static_cast<std::int64_t>(here ? found->place.bytes : found->trace.bytes)},
              {"command", fetching_line(*found)}}) +
              "\n"};
}

// A name that is one part of a path, whatever a worker is called.
std::string trace_file_name(const SentTrace& trace) {
  std::string out = "trace-";
  for (const char c : trace.worker) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-';
    out += plain ? c : '_';
  }
  return out + "-" + std::to_string(trace.step) + ".json.gz";
}

// Where it lies instead, and what fetches it there.
HttpAnswer not_here(const AskedTrace& of, const core::Error& why) {
  return problem(409, "elsewhere",
                 "the trace lies in " + core::visible(of.place.uri, 400) +
                     (of.trace.node.empty() ? "" : ", written on " + of.trace.node) +
                     "; this server cannot read it (" + core::visible(why.message, 600) +
                     "): " + fetching_line(of));
}

HttpAnswer send_trace(const TraceDesk& traces, const ApiCall& call) {
  const auto found = asked_trace(traces, call);
  if (!found) return problem(found.error());
  std::unique_ptr<TraceObject> object;
  if (!found->place.uri.empty()) {
    auto opened = traces.objects.open(found->run, found->trace, found->place);
    if (!opened) return not_here(*found, opened.error());
    object = *std::move(opened);
  }
  const std::uint64_t size = found->place.bytes;
  const std::string tag = "\"" + std::to_string(found->place.partition) + "-" +
                          std::to_string(found->place.offset) + "-" + std::to_string(size) + "\"";
  const std::string_view only_if = call.request.header("If-Range");
  ByteRange range;
  const bool other = !only_if.empty() && only_if != tag;  // its beginning is of another file
  const RangeAsked asked = asked_range(other ? "" : call.request.header("Range"), size, range);
  HttpHeaders headers{{"Accept-Ranges", "bytes"},
                      {"ETag", tag},
                      {"Content-Length", std::to_string(range.end - range.begin)}};
  if (asked == RangeAsked::beyond) {
    HttpAnswer out =
        problem(416, "no-such-range", "expected a range of its " + std::to_string(size) + " bytes");
    out.headers.emplace_back("Content-Range", "bytes */" + std::to_string(size));
    return out;
  }
  if (traces.open->fetch_add(1) >= kMostTracesSent) {
    traces.open->fetch_sub(1);
    HttpAnswer out = problem(429, "too-many-traces",
                             std::to_string(kMostTracesSent) + " traces are being sent; try again");
    out.headers.emplace_back("Retry-After", "5");
    return out;
  }
  auto stream = object ? object_stream(std::move(object), found->run, found->trace, found->place,
                                       range, traces.open)
                       : trace_stream(traces.transport, found->run, found->trace, found->place,
                                      range, traces.open);
  headers.emplace_back("Content-Disposition",
                       "attachment; filename=\"" + trace_file_name(found->trace) + "\"");
  const bool part = asked == RangeAsked::part;
  if (part) {
    headers.emplace_back("Content-Range", "bytes " + std::to_string(range.begin) + "-" +
                                              std::to_string(range.end - 1) + "/" +
                                              std::to_string(size));
  }
  return {part ? 206 : 200, {}, kTraceType, std::move(headers), std::move(stream)};
}

constexpr std::string_view kTraceSchemas =
    R"json({"Traces":{"type":"object","properties":{
   "items":{"type":"array","items":{"$ref":"#/components/schemas/Trace"}},
   "as_of":{"type":"string","format":"date-time"}},"required":["items","as_of"],"additionalProperties":false},
 "Trace":{"type":"object","properties":{"id":{"type":"string"},"command_id":{"type":"string"},
   "by":{"type":"string","nullable":true},"worker":{"type":"string"},"rank":{"type":"integer"},
   "node":{"type":"string","nullable":true},"attempt":{"type":"integer"},
   "step":{"type":"integer","description":"at which it was sent"},
   "first_step":{"type":"integer","nullable":true},"steps":{"type":"integer","nullable":true},
   "bytes":{"type":"integer","description":"compressed by gzip"},
   "sent_at":{"type":"string","format":"date-time"}},
   "required":["id","command_id","by","worker","rank","node","attempt","step","first_step","steps","bytes","sent_at"],
   "additionalProperties":false},
 "TracePlace":{"type":"object","properties":{"id":{"type":"string"},
   "here":{"type":"boolean","description":"true: this server sends the bytes"},
   "uri":{"type":"string","nullable":true,"description":"else where they lie"},
   "why":{"type":"string","nullable":true,"description":"this server does not read there"},
   "node":{"type":"string","nullable":true,"description":"of the rank that has written them"},
   "bytes":{"type":"integer"},"command":{"type":"string","description":"that fetches them"}},
   "required":["id","here","uri","why","node","bytes","command"],"additionalProperties":false}})json";

}  // namespace

std::string_view trace_schemas() noexcept { return kTraceSchemas; }

std::vector<ApiRoute> trace_routes(ApiDesk& desk, ingest::Transport& transport,
                                   const insights::TracePlaces& places) {
  const auto shared =
      std::make_shared<const TraceDesk>(TraceDesk{desk, transport, TraceObjects(places)});
  const auto of_desk = [&](auto handler) {
    return [shared, handler](const ApiCall& call) { return handler(*shared, call); };
  };
  ApiParameter run{"run", ParameterType::text, "its uid, or the beginning of it"};
  ApiParameter id{"id", ParameterType::text, "of the trace, as the list has it"};
  run.in_path = id.in_path = true;
  return {
      {"GET",
       "/api/v1/runs/{run}/traces",
       ApiRole::viewer,
       "List the traces that the ranks of a run have sent",
       of_desk(list_traces),
       {run},
       {},
       {{200, "newest first", "Traces"}}},
      {"GET",
       "/api/v1/runs/{run}/traces/{id}",
       ApiRole::viewer,
       "Download a trace, or a range of its bytes",
       of_desk(send_trace),
       {run, id},
       {},
       {{200, "a Chrome trace, compressed", "", kTraceType},
        {206, "a part of it", "", kTraceType}}},
      {"GET",
       "/api/v1/runs/{run}/traces/{id}/place",
       ApiRole::viewer,
       "Say where the bytes of a trace are",
       of_desk(show_trace_place),
       {run, id},
       {},
       {{200, "here, or somewhere else", "TracePlace"}}},
  };
}

}  // namespace tocsin::app
