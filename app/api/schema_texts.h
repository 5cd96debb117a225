// The schemas of the API as they are written, by what they are about: each an object of named schemas.
// Internal to api_schemas.
#pragma once

#include <string_view>

namespace tocsin::app {

std::string_view curve_schemas() noexcept;
std::string_view acting_schemas() noexcept;
std::string_view alertmanager_schemas() noexcept;

}  // namespace tocsin::app
