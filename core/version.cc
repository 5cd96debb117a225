#include "core/version.h"

#ifndef TOCSIN_VERSION
#error "the build gives TOCSIN_VERSION"
#endif

namespace tocsin::core {

std::string_view version() noexcept { return TOCSIN_VERSION; }

}  // namespace tocsin::core
