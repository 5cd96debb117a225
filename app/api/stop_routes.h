// Stops in /api/v1, as `tocsin stops` shows and decides them.
#pragma once

#include <vector>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"

namespace tocsin::app {

/// `desk` outlives the routes.
std::vector<ApiRoute> stop_routes(ApiDesk& desk);

}  // namespace tocsin::app
