// Groups of the router: who was told of what, what is owed, when each is looked at next.
#pragma once

#include <vector>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"

namespace tocsin::app {

/// The desk outlives them.
std::vector<ApiRoute> group_routes(ApiDesk& desk);

}  // namespace tocsin::app
