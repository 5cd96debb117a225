// Counts what is asked over HTTP: tocsin_router_api_requests_total.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "app/serve/http_routes.h"
#include "core/telemetry.h"

namespace tocsin::app {

/// Each handler counts its answers; the path is the route's, with names in braces.
inline void count_requests(std::vector<HttpRoute>& table, core::Telemetry& telemetry) {
  for (HttpRoute& route : table) {
    route.handler = [answer = std::move(route.handler), method = route.method, path = route.path,
                     &telemetry](const HttpRequest& request) {
      HttpAnswer out = answer(request);
      telemetry
          .counter("tocsin_router_api_requests_total", "requests over HTTP that a route answered",
                   {{"method", method}, {"route", path}, {"code", std::to_string(out.status)}})
          .add();
      return out;
    };
  }
}

}  // namespace tocsin::app
