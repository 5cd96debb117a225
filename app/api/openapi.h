// The API's description as OpenAPI 3.0, from the declarations of its routes.
#pragma once

#include <span>
#include <string>

#include "app/api/api_route.h"
#include "core/value.h"

namespace tocsin::app {

core::Value openapi_document(std::span<const ApiRoute> routes, const std::string& version);

}  // namespace tocsin::app
