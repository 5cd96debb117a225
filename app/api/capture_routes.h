// A person asks a running job to capture more, or for a profile: POST /api/v1/runs/{run}/capture and /profile.
#pragma once

#include <string_view>
#include <vector>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"

namespace tocsin::app {

/// `desk` outlives the routes.
std::vector<ApiRoute> capture_routes(ApiDesk& desk);
/// Schemas of their bodies and answers: a JSON object, by name.
std::string_view capture_schemas() noexcept;

}  // namespace tocsin::app
