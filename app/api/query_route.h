// Many questions about runs at once: POST /api/v1/query.
#pragma once

#include <span>

#include "app/api/api_route.h"

namespace tocsin::app {

/// Asks the GET routes of a run among `declared`, which it copies. A page that shows six charts asks once when the
/// run moves on.
ApiRoute query_route(std::span<const ApiRoute> declared);

}  // namespace tocsin::app
