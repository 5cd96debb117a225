// Alertmanager's API v2 over our topics: what karma, Grafana, Prometheus and amtool ask.
#pragma once

#include <vector>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"

namespace tocsin::app {

/// `desk` outlives the routes.
std::vector<ApiRoute> alertmanager_routes(ApiDesk& desk);

}  // namespace tocsin::app
