#include "app/api/stream_routes.h"

#include <algorithm>
#include <utility>

#include "app/serve/problem.h"
#include "core/identity.h"
#include "core/text.h"
#include "core/visible_text.h"

namespace tocsin::app {

core::Result<StreamFilter> read_stream_filter(const UrlQuery& query) {
  StreamFilter out;
  const auto& known = StreamHub::types();
  for (const std::string& given : query.values("types")) {
    std::string_view rest = given;
    while (!rest.empty()) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      const std::string type(rest.substr(0, comma));
      rest.remove_prefix(std::min(comma + 1, rest.size()));
      if (std::find(known.begin(), known.end(), type) != known.end()) {
        out.types.insert(type);
        continue;
      }
      const std::string near = core::nearest(type, known);
      return core::invalid_argument("types: there is no \"" + core::visible(type, 100) + "\"" +
                                    (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
    }
  }
  for (const std::string& given : query.values("run")) {
    const auto run = core::parse_run_uid(given);
    if (!run) {
      return core::invalid_argument("run: expected the UUID of a run, found \"" +
                                    core::visible(given, 100) + "\"");
    }
    out.runs.insert(*run);
  }
  return out;
}

namespace {

// Who has said who he is has streams of his own, wherever he is: behind a proxy all have one address.
std::string owner_of(const ApiCall& call) {
  const bool named = call.who.by == KnownBy::session || call.who.by == KnownBy::proxy;
  return named ? "name " + call.who.name : "address " + std::string(call.request.client);
}

HttpAnswer open_stream(ApiDesk& desk, const ApiCall& call) {
  auto filter = read_stream_filter(call.query);
  if (!filter) return problem(filter.error());
  auto stream =
      desk.streams->open(owner_of(call), std::move(*filter), call.request.header("last-event-id"));
  if (!stream) {
    HttpAnswer out = problem(429, "too-many-streams", stream.error().message);
    out.headers.emplace_back("Retry-After", "10");
    return out;
  }
  desk.view.follow();
  HttpAnswer out{200, "", "text/event-stream"};
  out.headers.emplace_back("X-Accel-Buffering", "no");
  out.stream = std::move(*stream);
  return out;
}

}  // namespace

std::vector<ApiRoute> stream_routes(ApiDesk& desk) {
  ApiParameter run{"run", ParameterType::text, "UUID of a run: events of other runs are left out"};
  run.repeated = true;
  ApiParameter types{"types", ParameterType::text,
                     "of issue, delivery, command, ack, silence, lag and tick, between commas"};
  types.repeated = true;
  return {{"GET",
           "/api/v1/stream",
           ApiRole::viewer,
           "Follow what happens, as server-sent events",
           [&desk](const ApiCall& call) { return open_stream(desk, call); },
           {types, run},
           {},
           {{200, "a stream without an end", "EventStream", "text/event-stream"}}}};
}

}  // namespace tocsin::app
