// How integrations stand, as a router that starts now would know it: from the log of deliveries, the outbox
// and what people have ordered.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actions/actions.h"
#include "core/notification.h"
#include "core/result.h"
#include "core/time.h"
#include "core/value.h"
#include "ingest/ingest.h"

namespace tocsin::app {

struct SeenEndpoint {
  actions::EndpointStand stand;
  std::string type;
  std::string receiver;
  bool enabled = true;
  bool shadow = false;
  std::optional<core::WallTime> last_success;
  std::optional<core::WallTime> last_failure;
  std::string failure;  // of the last failed attempt: class, code and detail
};

/// Every integration of the configuration, in its order.
core::Result<std::vector<SeenEndpoint>> read_endpoints(
    ingest::Transport& transport, const std::vector<actions::LaneOptions>& lanes,
    const actions::ReceiversConfig& receivers, core::WallTime now);

/// "ready", "off: switched off by ada…", "breaker open until …"; one of a few words first.
std::string endpoint_state(const SeenEndpoint& endpoint, core::WallTime now);
/// It sends nothing, and should.
bool is_unwell(const SeenEndpoint& endpoint, core::WallTime now);
std::string endpoints_text(const std::vector<SeenEndpoint>& endpoints, core::WallTime now);
core::Value endpoints_value(const std::vector<SeenEndpoint>& endpoints, core::WallTime now);

}  // namespace tocsin::app
