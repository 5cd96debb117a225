// Who am I, and sessions of people with a browser.
#pragma once

#include <vector>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"

namespace tocsin::app {

/// `desk` outlives the routes.
std::vector<ApiRoute> session_routes(ApiDesk& desk);

}  // namespace tocsin::app
