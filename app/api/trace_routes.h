// Traces that a run has sent: a list, and their bytes as files for Perfetto.
#pragma once

#include <string_view>
#include <vector>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"

namespace tocsin::app {

/// `desk` and `transport` outlive the routes.
std::vector<ApiRoute> trace_routes(ApiDesk& desk, ingest::Transport& transport,
                                   const insights::TracePlaces& places);
/// Schemas of their answers: a JSON object, by name.
std::string_view trace_schemas() noexcept;

}  // namespace tocsin::app
