// What a frame says that is not columns, as the structs that exist for it.
#pragma once

#include <variant>

#include "core/dictionary.h"
#include "core/lifecycle.h"

namespace tocsin::core {

/// Nothing for a frame of columns, and for kinds that carry opaque bytes.
using FrameBody = std::variant<std::monostate, Lifecycle, Dictionary>;

}  // namespace tocsin::core
