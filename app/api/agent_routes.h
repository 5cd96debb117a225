// How often a node's agent samples, and what: asked for while it runs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"

namespace tocsin::app {

/// `desk` outlives them; `store`: the file of the store of events.
std::vector<ApiRoute> agent_routes(ApiDesk& desk, const std::string& store);
/// JSON of their schemas.
std::string_view agent_schemas() noexcept;

}  // namespace tocsin::app
