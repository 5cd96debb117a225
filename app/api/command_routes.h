// The list of commands to runs and to nodes' agents, now and as it was.
#pragma once

#include <string>
#include <vector>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"

namespace tocsin::app {

/// `desk` outlives it; `store`: the file of the store of events.
std::vector<ApiRoute> command_routes(ApiDesk& desk, const std::string& store);

}  // namespace tocsin::app
