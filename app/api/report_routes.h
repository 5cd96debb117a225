// The report about a run: /api/v1/runs/{run}/report.html, .json and .md.
#pragma once

#include <vector>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"

namespace tocsin::app {

/// `desk` outlives the routes.
std::vector<ApiRoute> report_routes(ApiDesk& desk);

}  // namespace tocsin::app
