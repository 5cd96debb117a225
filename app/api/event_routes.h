// Issues of other producers over HTTP, as CloudEvents 1.0.
#pragma once

#include <vector>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"

namespace tocsin::app {

/// `desk` outlives the routes.
std::vector<ApiRoute> event_routes(ApiDesk& desk);

}  // namespace tocsin::app
