#include "app/api/api.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <utility>

#include "app/api/ack_routes.h"
#include "app/api/agent_routes.h"
#include "app/api/alertmanager_routes.h"
#include "app/api/api_desk.h"
#include "app/api/capture_routes.h"
#include "app/api/command_routes.h"
#include "app/api/compare_routes.h"
#include "app/api/event_routes.h"
#include "app/api/feedback_routes.h"
#include "app/api/fleet_routes.h"
#include "app/api/group_routes.h"
#include "app/api/hardware_routes.h"
#include "app/api/heat_routes.h"
#include "app/api/histogram_routes.h"
#include "app/api/idempotency.h"
#include "app/api/inbound_hooks.h"
#include "app/api/link_pages.h"
#include "app/api/name_routes.h"
#include "app/api/openapi.h"
#include "app/api/page_routes.h"
#include "app/api/past_lists.h"
#include "app/api/pin_routes.h"
#include "app/api/query_route.h"
#include "app/api/replay_routes.h"
#include "app/api/report_routes.h"
#include "app/api/resource_routes.h"
#include "app/api/run_routes.h"
#include "app/api/run_stop.h"
#include "app/api/series_routes.h"
#include "app/api/session_routes.h"
#include "app/api/silence_routes.h"
#include "app/api/span_routes.h"
#include "app/api/spark_routes.h"
#include "app/api/stop_routes.h"
#include "app/api/stream_routes.h"
#include "app/api/system_routes.h"
#include "app/api/task_desk.h"
#include "app/api/trace_routes.h"
#include "app/api/view_routes.h"
#include "app/config/insights_place.h"
#include "app/process/version.h"
#include "app/serve/gzip.h"
#include "app/serve/problem.h"
#include "core/json.h"

namespace tocsin::app {
namespace {

core::Result<std::unique_ptr<const routing::Router>> explaining_router(const AppConfig& config) {
  auto actions = rule_actions(config.rules);
  if (!config.has_route && actions.empty()) return std::unique_ptr<const routing::Router>();
  routing::RouterOptions options;
  options.limits = config.router;
  options.time_intervals = config.time_intervals;
  auto made = routing::Router::create(config.route, std::move(actions),
                                      routing_integrations(config.receivers), std::move(options));
  if (!made) return made.error();
  return std::unique_ptr<const routing::Router>(std::move(*made));
}

// What asks the store of curves, as `kind` of tocsin_insights_query_seconds.
struct MeasuredRoutes {
  std::string_view kind;
  std::vector<ApiRoute> (*make)(ApiDesk&);
};
constexpr std::array kMeasured{
    MeasuredRoutes{"series", series_routes},    MeasuredRoutes{"names", name_routes},
    MeasuredRoutes{"heat", heat_routes},        MeasuredRoutes{"system", system_routes},
    MeasuredRoutes{"spans", span_routes},       MeasuredRoutes{"histogram", histogram_routes},
    MeasuredRoutes{"fleet", fleet_routes},      MeasuredRoutes{"compare", compare_routes},
    MeasuredRoutes{"sparklines", spark_routes}, MeasuredRoutes{"hardware", hardware_routes},
};

bool takes_moment(const ApiRoute& route) {
  return std::any_of(route.parameters.begin(), route.parameters.end(),
                     [](const ApiParameter& one) { return one.name == "at"; });
}

}  // namespace

struct Api::Parts {
  Parts(const AppConfig& config, ingest::Transport& transport, const core::Clock& clock,
        core::Log& log, const std::string& host, std::unique_ptr<const routing::Router> routing,
        core::Telemetry& telemetry)
      : desk(config, transport, clock, log, host, std::move(routing), telemetry),
        answered(clock),
        inbound(config.http.inbound, desk, telemetry),
        store(insights_path(config, "")),
        measures(telemetry),
        tasks(clock, config.insights.replays),
        replays(replay_routes(desk, tasks, transport, config)),
        traces(trace_routes(desk, transport, config.insights.traces)) {
    if (config.http.links) links = link_routes(*config.http.links, desk, telemetry);
  }

  HttpAnswer answer(const ApiRoute& route, const HttpRequest& request);
  /// Its answers are measured as `kind`.
  ApiRoute timed(std::string_view kind, ApiRoute route);

  ApiDesk desk;
  Idempotency answered;
  InboundHooks inbound;
  std::vector<HttpRoute> links;
  std::string store;    // the file of the store of events
  std::string openapi;  // of all routes
  core::Telemetry& measures;
  TaskDesk tasks;
  std::vector<ApiRoute> replays;
  std::vector<ApiRoute> traces;
};

ApiRoute Api::Parts::timed(std::string_view kind, ApiRoute route) {
  core::Histogram& took =
      measures.histogram("tocsin_insights_query_seconds",
                         "time of one question to the store of curves", {{"kind", kind}});
  route.handler = [answer = std::move(route.handler), &took,
                   &clock = desk.clock](const ApiCall& call) {
    const core::Duration begun = clock.monotonic();
    HttpAnswer out = answer(call);
    took.observe(std::chrono::duration<double>(clock.monotonic() - begun).count());
    return out;
  };
  return route;
}

HttpAnswer Api::Parts::answer(const ApiRoute& route, const HttpRequest& request) {
  auto verdict = desk.access.check(request, route.role, route.only_reads);
  if (verdict.refusal) return std::move(*verdict.refusal);
  const auto query = UrlQuery::parse(request.query);
  if (!query) return problem(query.error());
  std::string field;
  if (route.method == "GET" && query->value("at") && !takes_moment(route))
    return problem(400, "invalid-parameter", why_only_now(route.path), "at");
  if (const auto good = check_parameters(route, *query, field); !good)
    return problem(400, "invalid-parameter", good.error().message, field);
  const ApiCall call{request, verdict.who, *query};
  // Not of what anybody may do: nobody has a name there, and a session is for one browser.
  const bool once = route.method != "GET" && !route.only_reads && route.role > ApiRole::anybody;
  return once ? answered.once(call, [&] { return route.handler(call); }) : route.handler(call);
}

core::Result<std::unique_ptr<Api>> Api::create(const AppConfig& config,
                                               ingest::Transport& transport,
                                               const core::Clock& clock, core::Log& log,
                                               const std::string& host,
                                               core::Telemetry& telemetry) {
  auto routing = explaining_router(config);
  if (!routing) return routing.error();
  return std::unique_ptr<Api>(new Api(std::make_unique<Parts>(config, transport, clock, log, host,
                                                              std::move(*routing), telemetry)));
}

// A file that comes later counts then; that it is not there yet is no reason not to start.
Api::Api(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {
  for (std::string& why : parts_->desk.access.unusable_tokens()) {
    parts_->desk.log.warn("api_token_unusable", {{"error", std::move(why)}});
  }
}
Api::~Api() = default;

std::vector<HttpRoute> Api::routes() {
  std::vector<ApiRoute> declared;
  for (auto make : {alertmanager_routes, event_routes, group_routes, resource_routes,
                    silence_routes, ack_routes, stop_routes, stream_routes, session_routes,
                    run_routes, run_stop_routes, report_routes, capture_routes, view_routes}) {
    for (ApiRoute& route : make(parts_->desk)) declared.push_back(std::move(route));
  }
  for (ApiRoute& route : feedback_routes(parts_->desk, parts_->store))
    declared.push_back(std::move(route));
  for (ApiRoute& route : pin_routes(parts_->desk, parts_->store))
    declared.push_back(std::move(route));
  for (ApiRoute& route : command_routes(parts_->desk, parts_->store))
    declared.push_back(std::move(route));
  for (ApiRoute& route : agent_routes(parts_->desk, parts_->store))
    declared.push_back(std::move(route));
  for (const ApiRoute& route : parts_->replays) declared.push_back(route);
  for (const ApiRoute& route : parts_->traces) declared.push_back(route);
  for (const auto& [kind, make] : kMeasured) {
    for (ApiRoute& route : make(parts_->desk))
      declared.push_back(parts_->timed(kind, std::move(route)));
  }
  declared.push_back(query_route(declared));
  declared.push_back({"GET",
                      "/api/v1/openapi.json",
                      ApiRole::anybody,
                      "Describe this API as OpenAPI 3.0",
                      [parts = parts_.get()](const ApiCall&) {
                        return HttpAnswer{200, parts->openapi};
                      },
                      {},
                      {},
                      {{200, "this API", "OpenApi"}}});
  parts_->openapi = core::to_json(openapi_document(declared, version_text())) + "\n";
  std::vector<HttpRoute> out;
  for (ApiRoute& route : declared) {
    HttpRoute served{route.method, route.path, "application/json", {}, false, true};
    served.handler = [parts = parts_.get(), route = std::move(route)](const HttpRequest& request) {
      HttpAnswer made = parts->answer(route, request);
      const bool kept =
          std::any_of(made.headers.begin(), made.headers.end(),
                      [](const auto& header) { return header.first == "Cache-Control"; });
      if (!kept) made.headers.emplace_back("Cache-Control", "no-store");
      made.headers.emplace_back("X-Content-Type-Options", "nosniff");
      compress(request, made);
      return made;
    };
    out.push_back(std::move(served));
  }
  for (HttpRoute& route : parts_->inbound.routes()) out.push_back(std::move(route));
  for (const HttpRoute& route : parts_->links) out.push_back(route);
  return out;
}

std::vector<HttpRoute> Api::pages() { return page_routes(parts_->desk.access); }

}  // namespace tocsin::app
