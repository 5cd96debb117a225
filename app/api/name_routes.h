// Names of a run's series: /api/v1/runs/{run}/names.
#pragma once

#include <vector>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"

namespace tocsin::app {

/// `desk` outlives the routes.
std::vector<ApiRoute> name_routes(ApiDesk& desk);

}  // namespace tocsin::app
