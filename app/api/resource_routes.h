// Lists of /api/v1: issues, deliveries, commands, changes by people.
#pragma once

#include <vector>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"

namespace tocsin::app {

/// `desk` outlives the routes.
std::vector<ApiRoute> resource_routes(ApiDesk& desk);

}  // namespace tocsin::app
