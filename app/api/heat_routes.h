// Tensors of a run: /api/v1/runs/{run}/heatmap and …/health.
#pragma once

#include <vector>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"

namespace tocsin::app {

/// `desk` outlives the routes.
std::vector<ApiRoute> heat_routes(ApiDesk& desk);

}  // namespace tocsin::app
