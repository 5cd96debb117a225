// All nodes and what failed on them: /api/v1/nodes, /api/v1/nodes/{node}.
#pragma once

#include <string_view>
#include <vector>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"

namespace tocsin::app {

/// `desk` outlives the routes.
std::vector<ApiRoute> fleet_routes(ApiDesk& desk);

/// Fleet, FleetNode.
std::string_view fleet_schemas() noexcept;

}  // namespace tocsin::app
