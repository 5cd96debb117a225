// Samples of the nodes of a run: /api/v1/runs/{run}/nodes, /system, /system/heatmap, /resources.
#pragma once

#include <vector>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"

namespace tocsin::app {

/// `desk` outlives the routes.
std::vector<ApiRoute> system_routes(ApiDesk& desk);

}  // namespace tocsin::app
