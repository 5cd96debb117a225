// The route by which a note on a run is written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"

namespace tocsin::app {

/// `store`: the file of the store of events.
std::vector<ApiRoute> run_note_routes(ApiDesk& desk, const std::string& store);
/// {…}: schemas by name.
std::string_view run_note_schemas() noexcept;

}  // namespace tocsin::app
