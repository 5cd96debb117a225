// What bodies and answers of the API hold, as JSON Schema in OpenAPI's dialect.
#pragma once

#include "core/value.h"

namespace tocsin::app {

/// By name; routes name them.
const core::Value& api_schemas();

}  // namespace tocsin::app
