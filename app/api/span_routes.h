// Where the time of a run went: /api/v1/runs/{run}/spans, /steps, /ranks, /phases, /operations.
#pragma once

#include <vector>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"

namespace tocsin::app {

/// `desk` outlives the routes.
std::vector<ApiRoute> span_routes(ApiDesk& desk);

}  // namespace tocsin::app
