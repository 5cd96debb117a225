#include "app/api/api.h"

#include <utility>

#include "app/api/alertmanager_routes.h"
#include "app/api/event_routes.h"
#include "app/serve/access.h"

namespace tocsin::app {
namespace {

// `Access` outlives the route.
HttpRoute guarded(ApiRoute route, const Access& access) {
  const auto handler = [handler = std::move(route.handler), role = route.role,
                        &access](const HttpRequest& request) -> HttpAnswer {
    auto verdict = access.check(request, role);
    if (verdict.refusal) return std::move(*verdict.refusal);
    HttpAnswer out = handler(request, verdict.who);
    out.headers.emplace_back("Cache-Control", "no-store");
    return out;
  };
  return {std::move(route.method),
          std::move(route.path),
          "application/json",
          handler,
          false,  // a 404 names the few pages for people
          true};
}

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

}  // namespace

struct Api::Parts {
  Access access;
  ApiDesk desk;
};

core::Result<std::unique_ptr<Api>> Api::create(const AppConfig& config,
                                               ingest::Transport& transport,
                                               const core::Clock& clock, core::Log& log,
                                               const std::string& host) {
  auto routing = explaining_router(config);
  if (!routing) return routing.error();
  // NOLINTNEXTLINE(modernize-make-unique): Clang 14 makes no aggregate that way
  return std::unique_ptr<Api>(new Api(std::unique_ptr<Parts>(
      new Parts{Access(config.http.access, config.http.listen, config.external_url),
                ApiDesk{{transport, clock, log},
                        {transport, host},
                        std::move(*routing),
                        clock,
                        log,
                        config.cluster,
                        config.router.resolve_timeout,
                        clock.now(),
                        config.receivers.names}})));
}

// A file that comes later counts then; that it is not there yet is no reason not to start.
Api::Api(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {
  for (std::string& why : parts_->access.unusable_tokens()) {
    parts_->desk.log.warn("api_token_unusable", {{"error", std::move(why)}});
  }
}
Api::~Api() = default;

std::vector<HttpRoute> Api::routes() {
  std::vector<HttpRoute> out;
  for (auto make : {alertmanager_routes, event_routes}) {
    for (ApiRoute& route : make(parts_->desk))
      out.push_back(guarded(std::move(route), parts_->access));
  }
  return out;
}

}  // namespace tocsin::app
