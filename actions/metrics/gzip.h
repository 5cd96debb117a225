// Compression of request bodies. Internal to actions.
#pragma once

#include <string>

#include "core/result.h"

namespace tocsin::actions {

/// RFC 1952. resource_exhausted: no memory.
core::Result<std::string> gzip(const std::string& bytes);

}  // namespace tocsin::actions
