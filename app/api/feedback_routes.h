// Verdicts and notes on issues in /api/v1, and how rules fare by them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"

namespace tocsin::app {

/// `desk` outlives the routes. `store`: the file of the store of events.
std::vector<ApiRoute> feedback_routes(ApiDesk& desk, const std::string& store);
/// Schemas of their bodies and answers: a JSON object, by name.
std::string_view feedback_schemas() noexcept;

}  // namespace tocsin::app
