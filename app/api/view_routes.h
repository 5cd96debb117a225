// The routes of curves that somebody chose for a job.
#pragma once

#include <string_view>
#include <vector>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"

namespace tocsin::app {

std::vector<ApiRoute> view_routes(ApiDesk& desk);
/// {…}: schemas by name.
std::string_view view_schemas() noexcept;

}  // namespace tocsin::app
