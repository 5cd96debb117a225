// Receivers that stand in for others: they exist, and none stands in for itself in a circle
// (docs/escalation.md).
#pragma once

#include "app/config/app_config.h"
#include "config/config.h"

namespace tocsin::app {

/// Reports at its place each `fallback` that names no receiver, or that closes a circle.
void check_fallbacks(const config::Reader& root, const AppConfig& config);

}  // namespace tocsin::app
