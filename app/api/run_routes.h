// Runs of /api/v1, as the store remembers them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"
#include "core/value.h"

namespace tocsin::app {

/// `desk` outlives the routes.
std::vector<ApiRoute> run_routes(ApiDesk& desk);

/// An episode whenever it was, with its run, its stop and its evidence, as GET
/// /api/v1/issues/{key}/{episode} has it; nullopt: the store does not know it, or cannot be read.
std::optional<core::ValueMap> remembered_issue(ApiDesk& desk, const std::string& key,
                                               const std::string& episode);

}  // namespace tocsin::app
