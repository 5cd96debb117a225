#include "app/api/stream_routes.h"

#include <algorithm>
#include <chrono>
#include <string>
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

constexpr std::int64_t kMostPollSeconds = 55;  // proxies give up after a minute

// Who has said who he is has streams of his own, wherever he is: behind a proxy all have one address.
std::string owner_of(const ApiCall& call) {
  const bool named = call.who.by == KnownBy::session || call.who.by == KnownBy::proxy;
  return named ? "name " + call.who.name : "address " + std::string(call.request.client);
}

// Since when: browsers say it in a header when they come back, programs as they like.
std::string place_in(const ApiCall& call) {
  const auto cursor = call.query.value("cursor");
  return std::string(cursor ? *cursor : call.request.header("last-event-id"));
}

HttpAnswer open_stream(ApiDesk& desk, const ApiCall& call) {
  auto filter = read_stream_filter(call.query);
  if (!filter) return problem(filter.error());
  const auto patience = call.query.value("poll");  // checked: a number
  auto stream = patience
                    ? desk.streams->poll(owner_of(call), std::move(*filter), place_in(call),
                                         std::chrono::seconds(std::stoi(std::string(*patience))))
                    : desk.streams->open(owner_of(call), std::move(*filter), place_in(call));
  if (!stream) {
    HttpAnswer out = problem(429, "too-many-streams", stream.error().message);
    out.headers.emplace_back("Retry-After", "10");
    return out;
  }
  desk.view.follow();
  HttpAnswer out{200, "", patience ? "application/json" : "text/event-stream"};
  if (!patience) out.headers.emplace_back("X-Accel-Buffering", "no");
  out.stream = std::move(*stream);
  return out;
}

}  // namespace

std::vector<ApiRoute> stream_routes(ApiDesk& desk) {
  ApiParameter run{"run", ParameterType::text, "UUID of a run: events of other runs are left out"};
  run.repeated = true;
  ApiParameter types{
      "types", ParameterType::text,
      "of issue, delivery, command, ack, silence, lag, store and tick, between commas"};
  types.repeated = true;
  ApiParameter poll{"poll", ParameterType::integer,
                    "one answer in JSON in place of a stream, after at most so many seconds"};
  poll.most = kMostPollSeconds;
  ApiParameter cursor{"cursor", ParameterType::text,
                      "id of the last event that you have, as in Last-Event-ID"};
  return {{"GET",
           "/api/v1/stream",
           ApiRole::viewer,
           "Follow what happens, as server-sent events",
           [&desk](const ApiCall& call) { return open_stream(desk, call); },
           {types, run, poll, cursor},
           {},
           {{200, "a stream without an end", "EventStream", "text/event-stream"},
            {200, "with poll: what came behind the cursor", "PolledEvents"}}}};
}

}  // namespace tocsin::app
