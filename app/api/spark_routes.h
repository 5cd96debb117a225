// The losses of many runs as small curves, for the list of runs.
#pragma once

#include <string_view>
#include <vector>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"

namespace tocsin::app {

/// `desk` outlives the routes.
std::vector<ApiRoute> spark_routes(ApiDesk& desk);
/// Schemas of their answers: a JSON object, by name.
std::string_view spark_schemas() noexcept;

}  // namespace tocsin::app
