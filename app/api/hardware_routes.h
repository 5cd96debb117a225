// What went wrong with the GPUs of a run's nodes, as marks beside its curves.
#pragma once

#include <string_view>
#include <vector>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"

namespace tocsin::app {

/// `desk` outlives them.
std::vector<ApiRoute> hardware_routes(ApiDesk& desk);
/// {…}: schemas by name.
std::string_view hardware_schemas() noexcept;

}  // namespace tocsin::app
