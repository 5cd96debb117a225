// The route by which a run is pinned.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"

namespace tocsin::app {

/// `store`: the file of the store of events.
std::vector<ApiRoute> pin_routes(ApiDesk& desk, const std::string& store);
/// {…}: schemas by name.
std::string_view pin_schemas() noexcept;

}  // namespace tocsin::app
