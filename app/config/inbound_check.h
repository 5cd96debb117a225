// Webhooks of tools that are about an integration which is not there.
#pragma once

#include "app/config/app_config.h"
#include "config/config.h"

namespace tocsin::app {

/// An error for each, with the nearest id.
void check_inbound(const config::Reader& root, const AppConfig& config);
/// http.links needs an address that people reach.
void check_links(const config::Reader& root, const AppConfig& config);

}  // namespace tocsin::app
