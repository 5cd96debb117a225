// Elements of tensors by magnitude: /api/v1/runs/{run}/histogram.
#pragma once

#include <vector>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"

namespace tocsin::app {

/// `desk` outlives the routes.
std::vector<ApiRoute> histogram_routes(ApiDesk& desk);

}  // namespace tocsin::app
