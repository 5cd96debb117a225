// Runs beside completed runs of their job: /api/v1/compare.
#pragma once

#include <string_view>
#include <vector>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"

namespace tocsin::app {

/// `desk` outlives the routes.
std::vector<ApiRoute> compare_routes(ApiDesk& desk);

/// Comparison.
std::string_view compare_schemas() noexcept;

}  // namespace tocsin::app
