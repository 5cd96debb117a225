// Routes that are valid and most likely not what was meant.
#pragma once

#include "app/config/app_config.h"
#include "config/config.h"

namespace tocsin::app {

/// Warnings: a route that a sibling before it leaves nothing, a child without matchers, a
/// repeat_interval below group_interval.
void check_routes(const config::Reader& root, const AppConfig& config);

}  // namespace tocsin::app
