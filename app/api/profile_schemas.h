// Answers about samples and spans in the API's own description. Beside api_schemas.
#pragma once

#include <string_view>

namespace tocsin::app {

/// A JSON object, by name.
std::string_view profile_schemas();

}  // namespace tocsin::app
