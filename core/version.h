// Which version of Tocsin this is.
#pragma once

#include <string_view>

namespace tocsin::core {

/// As in python/tocsin/__init__.py, for example "1.2.3"; the build gives it.
std::string_view version() noexcept;

}  // namespace tocsin::core
