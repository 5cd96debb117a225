// The page: fixed files and the addresses that it draws itself.
#pragma once

#include <vector>

#include "app/serve/access.h"
#include "app/serve/http_routes.h"

namespace tocsin::app {

/// `access` outlives the routes. What the page shows it asks of the API, which decides who may see it.
std::vector<HttpRoute> page_routes(const Access& access);

}  // namespace tocsin::app
