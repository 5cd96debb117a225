// Curves of runs: /api/v1/runs/{run}/series.
#pragma once

#include <vector>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"

namespace tocsin::app {

/// `desk` outlives the routes.
std::vector<ApiRoute> series_routes(ApiDesk& desk);

}  // namespace tocsin::app
