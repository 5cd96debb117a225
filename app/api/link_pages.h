// Pages of links in mails: GET says what a link does, and only POST does it (docs/acknowledge.md).
#pragma once

#include <vector>

#include "app/api/api_desk.h"
#include "app/serve/http_routes.h"
#include "app/serve/link_seal.h"
#include "core/telemetry.h"

namespace tocsin::app {

/// /act/<link>. They keep nothing, so that any replica answers. `desk` outlives them.
std::vector<HttpRoute> link_routes(const LinkConfig& config, ApiDesk& desk,
                                   core::Telemetry& telemetry);

}  // namespace tocsin::app
