// Routes that are valid and most likely not what was meant.
#pragma once

#include "app/config/app_config.h"
#include "config/config.h"

namespace tocsin::app {

/// Warnings: a route that a sibling before it leaves nothing, a child without matchers, a
/// repeat_interval below group_interval, time intervals that the routes below do not inherit, an
/// inhibit rule that holds longer than its sources are known.
void check_routes(const config::Reader& root, const AppConfig& config);

}  // namespace tocsin::app
