// What happens, as server-sent events.
#pragma once

#include <vector>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"

namespace tocsin::app {

/// The parameters `types` and `run`. invalid_argument: one that is none, with the nearest.
core::Result<StreamFilter> read_stream_filter(const UrlQuery& query);

/// `desk` outlives the routes.
std::vector<ApiRoute> stream_routes(ApiDesk& desk);

}  // namespace tocsin::app
