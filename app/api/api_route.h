// One route of the API: an HTTP route, with who may use it.
#pragma once

#include <functional>
#include <string>

#include "app/serve/access.h"
#include "app/serve/http_routes.h"

namespace tocsin::app {

struct ApiRoute {
  std::string method;
  std::string path;  // "/api/v2/silence/{id}"
  ApiRole role = ApiRole::viewer;
  std::function<HttpAnswer(const HttpRequest&, const Principal&)> handler;
};

}  // namespace tocsin::app
