// A person asks a run to stop: POST /api/v1/runs/{run}/stop.
#pragma once

#include <vector>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"

namespace tocsin::app {

/// `desk` outlives the routes.
std::vector<ApiRoute> run_stop_routes(ApiDesk& desk);

}  // namespace tocsin::app
